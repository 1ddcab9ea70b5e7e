//! `spdy lab browse`: recorded pages in a real browser behind a link, beside virtual time.

mod args;
mod command;
mod files;
pub(crate) mod series;
pub(crate) mod visit_series;

pub(crate) use args::{Args, EXAMPLES};
pub(crate) use command::run;
