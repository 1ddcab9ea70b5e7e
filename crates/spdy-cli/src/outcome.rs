//! How a command ends. `main.rs` makes an exit code of it.

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

/// The command line names something that does not exist: exit code 2.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}
