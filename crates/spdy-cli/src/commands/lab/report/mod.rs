//! `spdy lab report` and `view`: a store as one page of HTML, written to a file, or served while an experiment fills the store.

mod command;
mod store_watcher;
pub(crate) mod view;
mod waterfall_args;

pub(crate) use command::{Args, EXAMPLES, run};
