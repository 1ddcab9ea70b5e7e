//! A file for each command: its arguments, and what it does with them.

pub(crate) mod completions;
pub(crate) mod fetch;
mod outcome;
pub(crate) mod race;
pub(crate) mod replica;
pub(crate) mod serve;

pub(crate) use outcome::{Outcome, Usage, run};
