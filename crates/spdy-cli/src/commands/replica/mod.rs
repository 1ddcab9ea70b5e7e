//! `spdy replica ...`: imports recorded pages, and shows, checks and draws them.

mod check;
mod command;
mod draw;
mod show;

pub(crate) use command::{Args, EXAMPLES, run};
