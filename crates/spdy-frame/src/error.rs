//! Why bytes are not a frame, or a block not headers. (Contract)

/// Why bytes are not a frame: always the end of the session's framing.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum FrameError {
    /// A frame type that has one length came with another.
    #[error("{kind} frame of {got} bytes, want {want}")]
    Length { kind: crate::kind::Kind, want: usize, got: usize },
    // Version { want, got }, TooLarge { kind, limit, got }, Flags.., SettingsCount .. 
}

/// Why a header block that inflated is not a set of headers: a stream error (SPDY/3.1 §2.6.10).
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// placeholder
    #[error("count")]
    Count,
    // TooManyPairs{limit}, TooLong{limit}, Name{..}, Value{..}, Duplicate{name}, Overrun, Leftover ..
}

/// Why a block did not inflate: the compression context is lost, so the session is.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InflateError {
    /// placeholder
    #[error("zlib")]
    Zlib,
}
