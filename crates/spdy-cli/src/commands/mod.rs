//! The commands: a folder or file for each. `command.rs` of a folder has the arguments and runs the command.

pub(crate) mod accelerate;
pub(crate) mod bench;
pub(crate) mod completions;
pub(crate) mod doctor;
pub(crate) mod fetch;
pub(crate) mod inspect;
pub(crate) mod lab;
pub(crate) mod race;
#[cfg(unix)]
pub(crate) mod record;
pub(crate) mod replica;
pub(crate) mod serve;
