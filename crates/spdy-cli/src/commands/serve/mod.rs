//! `spdy serve`: serves a recorded page or a folder from memory, over every protocol.

mod certificates;
pub(crate) mod command;
mod push;

pub(crate) use command::{Args, EXAMPLES, run};
