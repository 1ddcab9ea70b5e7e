//! `spdy replica ...`: imports, exports, shows, checks and draws recorded pages.

mod check;
mod command;
mod draw;
mod show;

pub(crate) use command::{Args, EXAMPLES, run};
