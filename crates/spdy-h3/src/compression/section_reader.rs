//! Decodes the field sections of one stream.

use std::task::{Context, Poll, ready};

use crate::code::Code;
use crate::compression::HeaderCompression;
use crate::fault::Fault;
use crate::qpack::{Field, SectionError};

impl From<SectionError> for Fault {
    fn from(error: SectionError) -> Self {
        let reason = error.to_string();
        match error {
            SectionError::TooLarge { .. } | SectionError::TooManyBlockedBytes { .. } => {
                Self::Stream(Code::EXCESSIVE_LOAD, reason)
            }
            SectionError::Invalid
            | SectionError::RequiredCount
            | SectionError::MissingEntry { .. }
            | SectionError::TooManyBlocked { .. } => {
                Self::Connection(Code::QPACK_DECOMPRESSION_FAILED, reason)
            }
        }
    }
}

/// The sections of one stream. Dropping it before the whole stream was read sends a Stream Cancellation instruction
/// (RFC 9204 §2.2.2.2).
pub(crate) struct SectionReader {
    compression: HeaderCompression,
    stream_id: u64,
    limit: usize,
    is_blocked: bool,
    is_over: bool,
}

impl std::fmt::Debug for SectionReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = f.debug_struct("SectionReader");
        out.field("stream_id", &self.stream_id)
            .field("is_blocked", &self.is_blocked);
        out.finish_non_exhaustive()
    }
}

impl SectionReader {
    pub(super) fn new(compression: HeaderCompression, stream_id: u64, limit: usize) -> Self {
        Self {
            compression,
            stream_id,
            limit,
            is_blocked: false,
            is_over: false,
        }
    }

    /// Decodes the next section. While it waits for the dynamic table, the same section is passed again.
    pub(crate) fn poll_decode(
        &mut self,
        cx: &mut Context<'_>,
        section: &[u8],
    ) -> Poll<Result<Vec<Field>, Fault>> {
        self.is_blocked = true;
        let decoded = self
            .compression
            .poll_decode(cx, self.stream_id, section, self.limit);
        let decoded = ready!(decoded);
        self.is_blocked = false;
        Poll::Ready(decoded.map_err(Fault::from))
    }

    /// The stream ended: no section follows.
    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }
}

impl Drop for SectionReader {
    fn drop(&mut self) {
        if !self.is_over || self.is_blocked {
            self.compression.cancel(self.stream_id);
        }
    }
}
