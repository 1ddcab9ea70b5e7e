//! `spdy race`: loads the same pages over the same networks by several protocols, and compares their times.

mod command;
mod results_table;

pub(crate) use command::{Args, EXAMPLES, run};
