//! `spdy replica ...`: imports, exports, shows, checks and draws recorded pages.

pub(crate) mod check;
pub(crate) mod command;
mod draw;
pub(crate) mod show;

pub(crate) use command::{Args, EXAMPLES, run};
