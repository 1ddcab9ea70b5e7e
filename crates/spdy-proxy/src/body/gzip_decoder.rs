//! Undoes gzip: member after member (RFC 1952 §2.2), and what follows the last of them is nothing, as for gzip itself. Servers pad, and
//! scripts print behind what was compressed; browsers show the page all the same.

use std::io::{self, Write};

use flate2::write::GzDecoder;

/// What a member begins with.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A decoder that writes to `W`.
pub(crate) enum GzipDecoder<W: Write> {
    /// Within a member.
    Member(Box<GzDecoder<W>>),
    /// Behind one, where another may begin; its first byte may have come.
    Between {
        /// What it writes to.
        out: W,
        /// Whether the first byte of another has come.
        begun: bool,
    },
    /// Behind the last.
    Behind(W),
    /// It met what is no gzip.
    Failed,
}

impl<W: Write> GzipDecoder<W> {
    pub(crate) fn new(out: W) -> Self {
        Self::Member(Box::new(GzDecoder::new(out)))
    }

    /// What it writes to; `None` after a failure.
    pub(crate) fn get_mut(&mut self) -> Option<&mut W> {
        match self {
            Self::Member(decoder) => Some(decoder.get_mut()),
            Self::Between { out, .. } | Self::Behind(out) => Some(out),
            Self::Failed => None,
        }
    }

    pub(crate) fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(&first) = bytes.first() {
            let taken = match self {
                Self::Member(decoder) => {
                    let taken = decoder.write(bytes)?;
                    if taken == 0 {
                        self.end_member()?;
                    }
                    taken
                }
                Self::Between { begun, .. } if !*begun && first == MAGIC[0] => {
                    *begun = true;
                    1
                }
                Self::Between { begun, .. } => {
                    let is_another = *begun && first == MAGIC[1];
                    let Self::Between { out, .. } = std::mem::replace(self, Self::Failed) else {
                        unreachable!("it was so a line before")
                    };
                    *self = Self::Behind(out);
                    if is_another {
                        self.begin_member()?;
                    }
                    0
                }
                Self::Behind(_) => bytes.len(),
                Self::Failed => return Err(io::ErrorKind::InvalidData.into()),
            };
            bytes = &bytes[taken..];
        }
        Ok(())
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Member(decoder) => decoder.flush(),
            Self::Between { .. } | Self::Behind(_) | Self::Failed => Ok(()),
        }
    }

    /// Fails within a member, or if its sum is another.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        match self {
            Self::Member(decoder) => decoder.try_finish(),
            Self::Between { .. } | Self::Behind(_) => Ok(()),
            Self::Failed => Err(io::ErrorKind::InvalidData.into()),
        }
    }

    fn end_member(&mut self) -> io::Result<()> {
        if let Self::Member(decoder) = std::mem::replace(self, Self::Failed) {
            let (out, begun) = (decoder.finish()?, false);
            *self = Self::Between { out, begun };
        }
        Ok(())
    }

    fn begin_member(&mut self) -> io::Result<()> {
        if let Self::Behind(out) = std::mem::replace(self, Self::Failed) {
            let mut decoder = Box::new(GzDecoder::new(out));
            decoder.write_all(&MAGIC[..1])?;
            *self = Self::Member(decoder);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).expect("a vector takes all");
        encoder.finish().expect("a vector takes all")
    }

    /// The text of `bytes`, fed in pieces of this length.
    fn gunzip(bytes: &[u8], piece: usize) -> io::Result<Vec<u8>> {
        let mut decoder = GzipDecoder::new(Vec::new());
        for piece in bytes.chunks(piece) {
            decoder.write_all(piece)?;
            decoder.flush()?;
        }
        decoder.finish()?;
        Ok(std::mem::take(decoder.get_mut().expect("it went well")))
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
                let text = gunzip(&bytes, piece).expect("it is gzip");
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
