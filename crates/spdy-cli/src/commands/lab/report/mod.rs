//! `spdy lab report` and `spdy lab view`: the report of a store as a file, or served while an experiment fills the store.

mod command;
mod store_watcher;
pub(crate) mod view;
mod waterfall_args;

pub(crate) use command::{Args, EXAMPLES, run};
