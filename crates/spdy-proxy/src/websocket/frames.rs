//! The frames of a WebSocket in one direction, as far as they must be known to end it in order (RFC 6455 §5.2): where one ends,
//! and whether it closes.
//!
//! ```text
//!  +------+------+-------------------+----------+-------------------+
//!  | 8    | 1+7  | 0, 16 or 64       | 0 or 32  | so many bytes     |
//!  | kind | mask, length             | mask     | payload           |   passed over
//!  +------+------+-------------------+----------+-------------------+
//! ```

/// The longest head of a frame, bytes.
const LONGEST_HEAD: usize = 14;
const KIND: u8 = 0x0f;
const CLOSE: u8 = 0x8;
const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;
/// The endpoint goes away (RFC 6455 §7.4.1).
const GOING_AWAY: u16 = 1001;

/// The position in the frames of the bytes so far.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    head: [u8; LONGEST_HEAD],
    /// Bytes of the current head so far.
    head_bytes: usize,
    /// Bytes of the current payload that are missing.
    remaining_payload: u64,
    is_closed: bool,
}

impl Frames {
    /// Parses the next `bytes`.
    pub(crate) fn advance(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.remaining_payload > 0 {
                let most = usize::try_from(self.remaining_payload).unwrap_or(usize::MAX);
                let passed = most.min(bytes.len());
                self.remaining_payload -= passed as u64;
                bytes = &bytes[passed..];
                continue;
            }
            self.head[self.head_bytes] = bytes[0];
            self.head_bytes += 1;
            bytes = &bytes[1..];
            if self.head_bytes == self.head_len() {
                self.is_closed |= self.head[0] & KIND == CLOSE;
                self.remaining_payload = self.payload_len();
                self.head_bytes = 0;
            }
        }
    }

    /// Whether a close frame has passed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// The length of the head, as far as its bytes so far show it.
    fn head_len(&self) -> usize {
        if self.head_bytes < 2 {
            return 2;
        }
        let mask = if self.head[1] & MASKED == 0 { 0 } else { 4 };
        2 + self.length_len() + mask
    }

    /// Bytes of the length after the first two.
    fn length_len(&self) -> usize {
        match self.head[1] & LENGTH {
            127 => 8,
            126 => 2,
            _ => 0,
        }
    }

    fn payload_len(&self) -> u64 {
        match self.length_len() {
            0 => u64::from(self.head[1] & LENGTH),
            len => {
                let bytes = self.head[2..2 + len].iter();
                bytes.fold(0, |length, byte| length << 8 | u64::from(*byte))
            }
        }
    }

    /// A close frame, if one may follow: between two frames, and not after a close frame.
    pub(crate) fn close_frame(&self, masked: bool) -> Option<Vec<u8>> {
        if self.head_bytes > 0 || self.remaining_payload > 0 || self.is_closed {
            return None;
        }
        let code = GOING_AWAY.to_be_bytes();
        let head = [FINAL | CLOSE, 2];
        Some(match masked {
            false => [head, code].concat(),
            // A mask prevents scripts from choosing the bytes on the wire (RFC 6455 §10.3). These bytes were not chosen by a
            // script.
            true => [&[head[0], MASKED | head[1], 0, 0, 0, 0], &code[..]].concat(),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn frame(kind: u8, masked: bool, payload: usize) -> Vec<u8> {
        let mut frame = vec![FINAL | kind];
        let mask = if masked { MASKED } else { 0 };
        match payload {
            0..126 => frame.push(mask | u8::try_from(payload).unwrap()),
            126..65_536 => {
                frame.push(mask | 126);
                frame.extend(u16::try_from(payload).unwrap().to_be_bytes());
            }
            _ => {
                frame.push(mask | 127);
                frame.extend((payload as u64).to_be_bytes());
            }
        }
        if masked {
            frame.extend([0xff; 4]);
        }
        // Looks like frames that close.
        frame.extend(std::iter::repeat_n(0x88, payload));
        frame
    }

    proptest! {
        /// For any split of the bytes, a close frame fits between frames, and nowhere else.
        #[test]
        fn close_frame_fits_between_any_two_frames(
            all in prop::collection::vec(
                (prop::sample::select(vec![0_u8, 1, 2, 9, 10]), any::<bool>(), prop::sample::select(vec![0_usize, 1, 125, 126, 127, 65_535, 65_536])),
                1..5,
            ),
            cut in 1..70_000_usize,
        ) {
            let frames: Vec<Vec<u8>> = all
                .iter()
                .map(|(kind, masked, payload)| frame(*kind, *masked, *payload))
                .collect();
            let mut ends = vec![0];
            for frame in &frames {
                ends.push(ends.last().expect("the first end is 0") + frame.len());
            }
            let wire = frames.concat();
            let (mut parser, mut position) = (Frames::default(), 0);
            for piece in wire.chunks(cut) {
                parser.advance(piece);
                position += piece.len();
                prop_assert_eq!(parser.close_frame(false).is_some(), ends.contains(&position));
            }
        }
    }

    #[test]
    fn nothing_follows_a_close_frame() {
        let mut frames = Frames::default();
        assert_eq!(frames.close_frame(false).unwrap(), [0x88, 2, 0x03, 0xe9]);
        assert_eq!(
            frames.close_frame(true).unwrap(),
            [0x88, 0x82, 0, 0, 0, 0, 0x03, 0xe9]
        );
        frames.advance(&frame(CLOSE, true, 2));
        assert_eq!(frames.close_frame(false), None);
    }
}
