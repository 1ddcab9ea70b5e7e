//! The messages of a gRPC call: each has a prefix of five bytes, a flag and its length.

/// Bytes of a prefix.
const PREFIX_BYTES: usize = 5;

/// Finds the ends of the messages of one direction of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageScan {
    prefix: [u8; PREFIX_BYTES],
    /// Bytes of the prefix that have come.
    prefix_len: usize,
    /// Bytes of the message that are still to come.
    remaining: u64,
}

impl MessageScan {
    /// Reads the next bytes of the direction. Returns whether a message ends in them.
    pub(crate) fn read(&mut self, data: &[u8]) -> bool {
        let mut has_ended = false;
        let mut data = data;
        while !data.is_empty() {
            if self.prefix_len < PREFIX_BYTES {
                let len = data.len().min(PREFIX_BYTES - self.prefix_len);
                let (of_prefix, rest) = data.split_at(len);
                self.prefix[self.prefix_len..][..len].copy_from_slice(of_prefix);
                self.prefix_len += len;
                data = rest;
                if self.prefix_len < PREFIX_BYTES {
                    break;
                }
                let [_, len @ ..] = self.prefix;
                self.remaining = u32::from_be_bytes(len).into();
            }
            let remaining = usize::try_from(self.remaining).unwrap_or(usize::MAX);
            let (of_message, rest) = data.split_at(data.len().min(remaining));
            self.remaining -= of_message.len() as u64;
            data = rest;
            if self.remaining == 0 {
                self.prefix_len = 0;
                has_ended = true;
            }
        }
        has_ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_end_with_their_last_byte_however_they_are_split() {
        let messages = [
            &[0, 0, 0, 0, 3][..],
            b"one",
            &[1, 0, 0, 0, 0],
            &[0, 0, 0, 1, 0],
            &[7; 256],
        ];
        let ends = [8, 13, 13 + 261];
        let bytes = messages.concat();
        for piece_len in [1, 2, 3, 7, 300] {
            let mut scan = MessageScan::default();
            let mut begin = 0;
            for piece in bytes.chunks(piece_len) {
                let end = begin + piece.len();
                let expected = ends.iter().any(|at| (begin + 1..=end).contains(at));
                assert_eq!(scan.read(piece), expected, "{begin} {piece_len}");
                begin = end;
            }
        }
    }
}
