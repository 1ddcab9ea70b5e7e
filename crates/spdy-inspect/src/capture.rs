//! Capture files, whatever pieces they arrive in: pcap and pcapng, told apart by their first four bytes.
//!
//! ```text
//! d4c3b2a1 a1b2c3d4   pcap, microseconds        0a0d0d0a   pcapng
//! 4d3cb2a1 a1b23c4d   pcap, nanoseconds
//! ```
//!
//! By hand: a capture is followed while it grows, a record has a limit, an error says at which byte of the file,
//! and TLS secrets come out of pcapng, for which pcap-file has no block.

use bytes::{Buf, Bytes, BytesMut};

use crate::limits::Limits;
use crate::pcap::Pcap;
use crate::pcapng::Pcapng;

/// Why bytes are no capture. Every variant says where: `at` is the offset in the file of the record.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The first four bytes are of no format that is read.
    #[error("file begins {got:02x?}, want the magic number of pcap or pcapng")]
    Magic {
        /// The first four bytes.
        got: [u8; 4],
    },
    /// The file ends inside a record.
    #[error("file ends {have} bytes into the record at byte {at}")]
    Truncated {
        /// Where the record begins.
        at: u64,
        /// Bytes of it that are there.
        have: usize,
    },
    /// A record is too long, or its length is impossible.
    #[error("record at byte {at} claims {got} bytes, limit {limit}")]
    RecordLength {
        /// Where the record begins.
        at: u64,
        /// Bytes that it claims.
        got: u64,
        /// Most that is taken.
        limit: u64,
    },
    /// A pcapng block whose length is too short for its type, no multiple of four, or not the same at its end.
    #[error("block of type {kind:#x} at byte {at}: {what}")]
    Block {
        /// Where the block begins.
        at: u64,
        /// Type of the block.
        kind: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A packet of an interface that the file did not describe.
    #[error("packet at byte {at} of interface {got}, but {known} are described")]
    Interface {
        /// Where the block begins.
        at: u64,
        /// The interface.
        got: u32,
        /// How many are known.
        known: usize,
    },
    /// More interfaces than [`Limits::interfaces`].
    #[error("more than {limit} interfaces at byte {at}")]
    TooManyInterfaces {
        /// Where the block begins.
        at: u64,
        /// Most that are taken.
        limit: usize,
    },
}

/// What a capture holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Record {
    /// A packet.
    Packet {
        /// Nanoseconds since 1970, or 0 if the file does not say.
        unix_nanos: u64,
        /// Link type, of the registry of tcpdump (`LINKTYPE_*`).
        link: u32,
        /// The bytes that were kept.
        bytes: Bytes,
        /// Whether the packet was longer than what was kept.
        cut: bool,
    },
    /// TLS secrets, in the form of NSS's key log.
    Secrets(Bytes),
}

/// Reads a capture: push bytes, then poll records until there are none.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    input: BytesMut,
    /// Offset in the file of the first byte of `input`.
    at: u64,
    format: Format,
    failed: Option<CaptureError>,
}

#[derive(Debug)]
enum Format {
    Unknown,
    Pcap(Pcap),
    Pcapng(Pcapng),
}

/// What a format makes of the bytes that are there.
pub(crate) enum Step {
    /// More are needed.
    Wait,
    /// So many are done with, and hold this.
    Took(usize, Option<Record>),
}

impl Reader {
    /// At the beginning of a file.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            input: BytesMut::new(),
            at: 0,
            format: Format::Unknown,
            failed: None,
        }
    }

    /// Takes the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.input.extend_from_slice(bytes);
        }
    }

    /// The next record; `None` when more bytes are needed.
    ///
    /// # Errors
    ///
    /// What cannot be read past. The reader is spent then, and says the same again.
    pub fn poll(&mut self) -> Result<Option<Record>, CaptureError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let polled = self.step();
        if let Err(error) = &polled {
            self.failed = Some(error.clone());
            self.input = BytesMut::new();
        }
        polled
    }

    /// To be asked when the file has ended and [`poll`](Self::poll) has no more.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Truncated`] if the file ends inside a record.
    pub fn finish(&self) -> Result<(), CaptureError> {
        match (self.input.len(), &self.failed) {
            (0, _) | (_, Some(_)) if !matches!(self.format, Format::Unknown) => Ok(()),
            (have, _) => Err(CaptureError::Truncated { at: self.at, have }),
        }
    }

    fn step(&mut self) -> Result<Option<Record>, CaptureError> {
        loop {
            let step = match &mut self.format {
                Format::Unknown => {
                    let Some(&magic) = self.input.first_chunk::<4>() else {
                        return Ok(None);
                    };
                    self.format = if magic == crate::pcapng::MAGIC {
                        Format::Pcapng(Pcapng::default())
                    } else {
                        match Pcap::of_magic(magic) {
                            Some(pcap) => Format::Pcap(pcap),
                            None => return Err(CaptureError::Magic { got: magic }),
                        }
                    };
                    continue;
                }
                Format::Pcap(pcap) => pcap.step(self.at, &self.input, &self.limits)?,
                Format::Pcapng(pcapng) => pcapng.step(self.at, &self.input, &self.limits)?,
            };
            match step {
                Step::Wait => return Ok(None),
                Step::Took(len, record) => {
                    self.input.advance(len);
                    self.at += len as u64;
                    if record.is_some() {
                        return Ok(record);
                    }
                }
            }
        }
    }
}
