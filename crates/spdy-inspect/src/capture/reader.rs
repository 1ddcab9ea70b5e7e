//! Reads capture files from pieces of any size: pcap and pcapng, distinguished by their first four bytes.
//!
//! ```text
//! d4c3b2a1 a1b2c3d4   pcap, microseconds        0a0d0d0a   pcapng
//! 4d3cb2a1 a1b23c4d   pcap, nanoseconds
//! ```
//!
//! Not by a library: a capture is followed while it grows, a record has a limit, an error states its offset in the file, and pcapng
//! contains TLS secrets, for which pcap-file has no block.

use bytes::{Buf, BytesMut};

use crate::capture::pcap::Pcap;
use crate::capture::pcapng::Pcapng;
use crate::capture::record::{CaptureError, Record, Step};
use crate::limits::Limits;

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

impl Reader {
    /// Creates a reader at the beginning of a file.
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

    /// Adds the next bytes of the file.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.failed.is_none() {
            self.input.extend_from_slice(bytes);
        }
    }

    /// The next record; `None` if more bytes are needed.
    ///
    /// # Errors
    ///
    /// An error that prevents further reading. Later calls return the same error.
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

    /// Call this when the file has ended and [`poll`](Self::poll) returns no more records.
    ///
    /// # Errors
    ///
    /// [`CaptureError::Truncated`] if the file ends inside a record.
    pub fn finish(&self) -> Result<(), CaptureError> {
        match (self.input.len(), &self.failed) {
            (0, _) | (_, Some(_)) if !matches!(self.format, Format::Unknown) => Ok(()),
            (found, _) => Err(CaptureError::Truncated { at: self.at, found }),
        }
    }

    fn step(&mut self) -> Result<Option<Record>, CaptureError> {
        loop {
            let step = match &mut self.format {
                Format::Unknown => {
                    let Some(&magic) = self.input.first_chunk::<4>() else {
                        return Ok(None);
                    };
                    self.format = if magic == crate::capture::pcapng::MAGIC {
                        Format::Pcapng(Pcapng::default())
                    } else {
                        match Pcap::of_magic(magic) {
                            Some(pcap) => Format::Pcap(pcap),
                            None => return Err(CaptureError::Magic { found: magic }),
                        }
                    };
                    continue;
                }
                Format::Pcap(pcap) => pcap.step(self.at, &self.input, &self.limits)?,
                Format::Pcapng(pcapng) => pcapng.step(self.at, &self.input, &self.limits)?,
            };
            match step {
                Step::Wait => return Ok(None),
                Step::Consumed(len, record) => {
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
