//! Limits for untrusted files. Every reader takes [`Limits`]; exceeding one is an error that names it.

/// Limits for reading an untrusted file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of the file on disk.
    pub file_bytes: usize,
    /// Bytes of the decompressed file.
    pub inflated_bytes: usize,
    /// Records of a WARC, entries of a HAR.
    pub records: usize,
    /// Bytes of one literal head, and of one WARC record's own header.
    pub head_bytes: usize,
    /// Bytes of one body, real or filler.
    pub body_bytes: usize,
    /// Bytes of all filler together: a HAR of a kilobyte can state any amount.
    pub filler_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 512 << 20,
            inflated_bytes: 1 << 30,
            records: 100_000,
            head_bytes: 256 << 10,
            body_bytes: 256 << 20,
            filler_bytes: 512 << 20,
        }
    }
}

/// Maximum decoded bytes of a body whose text is scanned or checked; later bytes are ignored.
pub const DECODED_BODY_BYTES: usize = 64 << 20;
