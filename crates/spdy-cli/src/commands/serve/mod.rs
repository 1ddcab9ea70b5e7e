//! `spdy serve`: a recorded page or a folder, served from memory.

mod certificates;
mod command;
mod push;

pub(crate) use command::{Args, EXAMPLES, run};
