//! Interim responses: 100, 103.

pub mod continue_on_read;
pub mod early_hints;
pub mod expect_continue;
pub mod interim_responses;
