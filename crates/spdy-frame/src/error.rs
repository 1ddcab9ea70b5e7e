//! Errors in frames and header blocks: one type for each consequence.
//!
//! ```text
//! FrameError     the start of the next frame is unknown, or the peer broke a rule of the whole session
//! InflateError   the compression context is lost, and with it every later block
//! BlockError     the block inflated, but its text is not a set of headers: one stream is lost
//! ```
//!
//! This crate names the fault; the session decides which status is sent.

use crate::frames::kind::Kind;

/// A frame that cannot be decoded. No later frame of the session can be decoded either.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame whose type has a fixed length has another length.
    #[error("{kind} frame has {found} bytes, expected {expected}")]
    Length {
        /// Type of the frame.
        kind: Kind,
        /// Payload bytes that the spec fixes.
        expected: usize,
        /// Payload bytes that the head announced.
        found: usize,
    },
    /// A frame with a fixed part and a block is shorter than its fixed part.
    #[error("{kind} frame has {found} bytes, expected at least {expected}")]
    TooShort {
        /// Type of the frame.
        kind: Kind,
        /// Payload bytes of the fixed part.
        expected: usize,
        /// Payload bytes that the head announced.
        found: usize,
    },
    /// A control frame longer than [`Limits::control_payload_bytes`](crate::decoder::Limits).
    #[error("{kind} frame has {found} bytes, limit {limit}")]
    TooLarge {
        /// Type of the frame.
        kind: Kind,
        /// Maximum payload bytes.
        limit: usize,
        /// Payload bytes that the head announced.
        found: usize,
    },
    /// A control frame of another version of SPDY than the session's.
    #[error("{kind} frame has version {found}, expected {expected}")]
    Version {
        /// Type of the frame.
        kind: Kind,
        /// Version number of the session, as on the wire (2 or 3).
        expected: u16,
        /// Version number in the head.
        found: u16,
    },
    /// The peer is an HTTP/1.x server: its first bytes are a status line.
    #[error("the peer sent an HTTP/1.{minor} response to SPDY: this port does not speak SPDY")]
    Http1Response {
        /// Minor version: 0 or 1.
        minor: u8,
    },
    /// A frame that belongs to a stream names stream 0.
    #[error("{kind} frame has stream ID 0, expected a stream")]
    StreamZero {
        /// Type of the frame.
        kind: Kind,
    },
    /// The count in a SETTINGS frame disagrees with the frame's length, which is 4 + 8 for each entry.
    #[error("SETTINGS frame has {found} bytes for {count} entries, expected 4 + 8 per entry")]
    SettingsCount {
        /// Entries that the frame claims.
        count: u32,
        /// Payload bytes that the head announced.
        found: usize,
    },
}

/// A header block that inflated but is not a valid set of headers: a stream error (SPDY/3.1 §2.6.10).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// The block ends inside a count, a length, a name or a value.
    #[error("header block ends after {found} bytes, expected {expected}")]
    Overrun {
        /// Bytes that the fields before it require.
        expected: u64,
        /// Bytes in the block.
        found: usize,
    },
    /// Bytes follow the last pair.
    #[error("header block has {found} bytes after its last pair, expected none")]
    Leftover {
        /// Bytes after the last pair.
        found: usize,
    },
    /// More plain bytes than [`BlockLimits::plain_bytes`](crate::header_block::BlockLimits).
    #[error("header block has {found} decompressed bytes, limit {limit}")]
    TooLong {
        /// Maximum plain bytes.
        limit: usize,
        /// Plain bytes of the block.
        found: usize,
    },
    /// More pairs and further components than
    /// [`BlockLimits::pairs`](crate::header_block::BlockLimits).
    #[error("header block has {found} pairs and additional components, limit {limit}")]
    TooManyPairs {
        /// Maximum number of pairs and further components.
        limit: usize,
        /// The count in the block, or the number at which counting stopped.
        found: usize,
    },
    /// A name longer than [`BlockLimits::name_bytes`](crate::header_block::BlockLimits).
    #[error("header name has {found} bytes, limit {limit}")]
    NameTooLong {
        /// Maximum bytes.
        limit: usize,
        /// Bytes of the name.
        found: usize,
    },
    /// A value longer than [`BlockLimits::value_bytes`](crate::header_block::BlockLimits).
    #[error("value of {name} has {found} bytes, limit {limit}")]
    ValueTooLong {
        /// The name.
        name: String,
        /// Maximum bytes.
        limit: usize,
        /// Bytes of the value.
        found: usize,
    },
    /// An empty name.
    #[error("header name is empty, expected at least 1 byte")]
    NameEmpty,
    /// A name with a byte that is not allowed in names, such as a capital letter.
    #[error("header name {name} contains byte {byte:#04x}, expected a lower-case token")]
    NameByte {
        /// The name, with special bytes escaped.
        name: String,
        /// The first byte that is wrong.
        byte: u8,
    },
    /// A value with a line end, which would split an HTTP/1.1 message.
    #[error("value of {name} contains byte {byte:#04x}, expected no line break")]
    ValueByte {
        /// The name.
        name: String,
        /// The first byte that is wrong.
        byte: u8,
    },
    /// A value that starts or ends with a NUL, or has two NULs in a row.
    #[error("value of {name} has an empty component, expected at least 1 byte")]
    EmptyComponent {
        /// The name.
        name: String,
    },
    /// A name that occurs twice in the block.
    #[error("header name {name} occurs twice in a block, expected once")]
    Duplicate {
        /// The name.
        name: String,
    },
}

impl BlockError {
    /// Whether the block is valid but exceeds a limit: answered by FRAME_TOO_LARGE or HTTP 431 instead of
    /// PROTOCOL_ERROR.
    #[must_use]
    pub const fn is_over_limit(&self) -> bool {
        matches!(
            self,
            Self::TooLong { .. }
                | Self::TooManyPairs { .. }
                | Self::NameTooLong { .. }
                | Self::ValueTooLong { .. }
        )
    }
}

/// A block that did not inflate. The compression context is lost, so the session ends.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InflateError {
    /// The first block does not begin as a zlib stream with a preset dictionary: two bytes of zlib
    /// head with FDICT set, four bytes of dictionary id (RFC 1950 §2.2).
    #[error(
        "first header block starts with {found:02x?}, expected a zlib header with a preset dictionary"
    )]
    Head {
        /// The first bytes of the block, at most two.
        found: Vec<u8>,
    },
    /// The stream was made with another dictionary.
    #[error("preset dictionary has checksum {found:08x}, expected {expected:08x}")]
    Dictionary {
        /// Adler-32 of the version's dictionary.
        expected: u32,
        /// Adler-32 in the stream.
        found: u32,
    },
    /// The bytes are not valid deflate data.
    #[error("invalid deflate data after {inflated} decompressed bytes of the header block")]
    Data {
        /// Plain bytes of this block that were inflated before the error.
        inflated: usize,
    },
    /// The stream ended in an earlier block, but it must stay open until the session ends.
    #[error("deflate stream ended in an earlier header block, expected it to continue")]
    Ended,
    /// A block inflates to more than [`BlockLimits::inflated_bytes`](crate::header_block::BlockLimits).
    #[error("header block decompresses to more than {limit} bytes")]
    TooLong {
        /// Limit of plain bytes that are inflated, stored or not.
        limit: usize,
    },
}
