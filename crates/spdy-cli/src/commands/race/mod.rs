//! `spdy race`: the same pages over the same networks by every protocol, in virtual time.

mod command;
mod results_table;

pub(crate) use command::{Args, EXAMPLES, run};
