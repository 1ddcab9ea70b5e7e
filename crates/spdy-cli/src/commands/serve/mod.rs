//! `spdy serve`: serves a recorded page or a folder from memory, over every protocol.

mod certificates;
mod command;
mod push;

pub(crate) use command::{Args, EXAMPLES, run};
