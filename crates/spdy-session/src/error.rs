//! One error type for each consequence: the session lost, or a command refused. (Contract)

use spdy_frame::error::{FrameError, InflateError};

/// Why a session ended out of order.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SessionError {
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Inflate(#[from] InflateError),
    #[error("connection ended in the middle of {open_streams} streams")]
    Truncated { open_streams: usize },
    // ... a variant for each way to be wrong
}

/// Why a stream could not be opened now.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// As many are open as the peer allows: wait for `Event::CanOpen`.
    #[error("{limit} streams are open, as many as the peer allows")]
    Full { limit: u32 },
    /// A GOAWAY was sent or received, the session closed, or ids ran out: use another session.
    #[error("the session takes no new streams")]
    Closing,
}
