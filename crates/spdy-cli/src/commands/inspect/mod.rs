//! `spdy inspect`: SPDY in a packet capture, as text.

mod command;
mod inspect_printer;

pub(crate) use command::{Args, EXAMPLES, run};
