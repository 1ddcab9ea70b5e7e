//! How a command ends. `main.rs` makes an exit code of it.

pub(crate) use spdy_service::error::Usage;

/// How a command ended that printed its results.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outcome {
    /// Exit code 0.
    Done,
    /// Exit code 1. The results already show why: findings of a check, a URL that failed.
    Failed,
    /// The exit code of the program that the command ran.
    Code(u8),
}
