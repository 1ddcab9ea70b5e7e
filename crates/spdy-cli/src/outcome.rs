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

impl Outcome {
    /// `Done` if the results are as required, otherwise `Failed`.
    pub(crate) const fn done_if(are_as_required: bool) -> Self {
        if are_as_required {
            Self::Done
        } else {
            Self::Failed
        }
    }
}
