//! Decodes gzip, member after member (RFC 1952 §2.2). Bytes after the last member are ignored, as gzip and browsers do: some servers add
//! padding, and some scripts print more after their compressed output.
//!
//! ```text
//! Member --the member ends--> BetweenMembers --first byte of MAGIC--> BetweenMembers, `begun` --second byte--> Member
//!                                   `--------- any other byte -----------------`--> Trailing
//! ```

use std::io::{self, Write};

use flate2::write::GzDecoder;

/// The first two bytes of each member.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A decoder that writes the decoded bytes to a `W`.
pub(crate) enum GzipDecoder<W: Write> {
    /// Within a member.
    Member(Box<GzDecoder<W>>),
    /// After a member, where another may begin.
    BetweenMembers {
        out: W,
        /// Whether the last byte was the first of [`MAGIC`].
        begun: bool,
    },
    /// After the last member: further bytes are ignored.
    Trailing(W),
    /// A member could not be ended or begun. The output is lost.
    Failed,
}

impl<W: Write> GzipDecoder<W> {
    pub(crate) fn new(out: W) -> Self {
        Self::Member(Box::new(GzDecoder::new(out)))
    }

    /// The output; `None` if a member failed to end or begin. A failed write within a member keeps it.
    pub(crate) fn get_mut(&mut self) -> Option<&mut W> {
        match self {
            Self::Member(decoder) => Some(decoder.get_mut()),
            Self::BetweenMembers { out, .. } | Self::Trailing(out) => Some(out),
            Self::Failed => None,
        }
    }

    /// Decodes `bytes`, however the input is split.
    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(&first) = bytes.first() {
            let consumed = match self {
                Self::Member(decoder) => {
                    let consumed = decoder.write(bytes)?;
                    // The decoder takes no byte after the end of its member.
                    if consumed == 0 {
                        self.end_member()?;
                    }
                    consumed
                }
                Self::BetweenMembers { begun, .. } if !*begun && first == MAGIC[0] => {
                    *begun = true;
                    1
                }
                Self::BetweenMembers { begun, .. } => {
                    let is_magic = *begun && first == MAGIC[1];
                    let previous = std::mem::replace(self, Self::Failed);
                    let Self::BetweenMembers { out, .. } = previous else {
                        unreachable!("the arm matched this state")
                    };
                    *self = match is_magic {
                        true => Self::begin_member(out)?,
                        false => Self::Trailing(out),
                    };
                    0 // the new state takes the byte
                }
                Self::Trailing(_) => bytes.len(),
                Self::Failed => return Err(io::ErrorKind::InvalidData.into()),
            };
            bytes = &bytes[consumed..];
        }
        Ok(())
    }

    /// Writes what can be decoded of the bytes so far.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Member(decoder) => decoder.flush(),
            Self::BetweenMembers { .. } | Self::Trailing(_) | Self::Failed => Ok(()),
        }
    }

    /// Ends the input. Fails if it ends within a member, or if the member's checksum is wrong.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Member(decoder) => decoder.try_finish(),
            Self::BetweenMembers { .. } | Self::Trailing(_) => Ok(()),
            Self::Failed => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn end_member(&mut self) -> io::Result<()> {
        if let Self::Member(decoder) = std::mem::replace(self, Self::Failed) {
            let (out, begun) = (decoder.finish()?, false);
            *self = Self::BetweenMembers { out, begun };
        }
        Ok(())
    }

    /// A further member. The first byte of its [`MAGIC`] was consumed before, and so is written here; the caller writes the second.
    fn begin_member(out: W) -> io::Result<Self> {
        let mut decoder = Box::new(GzDecoder::new(out));
        decoder.write_all(&MAGIC[..1])?;
        Ok(Self::Member(decoder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder
            .write_all(text)
            .expect("writing to a Vec never fails");
        encoder.finish().expect("writing to a Vec never fails")
    }

    /// The text of `bytes`, fed in pieces of this length.
    fn gunzip(bytes: &[u8], piece: usize) -> io::Result<Vec<u8>> {
        let mut decoder = GzipDecoder::new(Vec::new());
        for piece in bytes.chunks(piece) {
            decoder.write_all(piece)?;
            decoder.flush()?;
        }
        decoder.finish()?;
        Ok(std::mem::take(decoder.get_mut().expect("finish succeeded")))
    }

    #[test]
    fn gzip_members_are_concatenated_and_trailing_bytes_ignored() {
        let (one, two) = (gzip(b"one"), gzip(b" and two"));
        for behind in [
            &b""[..],
            b"\n",
            &[0; 600],
            &MAGIC[..1],
            b"\x1f\x1f\x8b",
            b"\x1fnothing",
        ] {
            let bytes = [&one[..], &two, behind].concat();
            for piece in [1, 2, 3, 7, bytes.len()] {
                let text = gunzip(&bytes, piece).expect("the body is valid gzip");
                assert_eq!(text, b"one and two", "{behind:?} by {piece}");
            }
        }
    }

    #[test]
    fn truncated_or_corrupt_gzip_member_fails() {
        let (one, two) = (gzip(b"one"), gzip(b"two"));
        let all = [&one[..], &two].concat();
        let mut other_sum = one.clone();
        let at = other_sum.len() - 8;
        other_sum[at] ^= 1;
        let followed = [&other_sum[..], &two].concat();
        for piece in [1, 5, 100] {
            assert!(gunzip(&one[..one.len() - 1], piece).is_err());
            assert!(gunzip(&all[..all.len() - 1], piece).is_err());
            assert!(gunzip(&other_sum, piece).is_err());
            assert!(gunzip(&followed, piece).is_err());
            assert!(gunzip(b"no gzip at all", piece).is_err());
        }
    }
}
