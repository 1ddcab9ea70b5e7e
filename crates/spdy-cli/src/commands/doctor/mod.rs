//! `spdy doctor`: tries changes of a page in virtual time, and reports what each would save.

mod command;
pub(crate) mod savings_table;

pub(crate) use command::{Args, EXAMPLES, run};
