//! `spdy inspect`: SPDY in a packet capture, as text or JSON.

mod command;
pub(crate) mod inspect_event;
mod inspect_printer;

pub(crate) use command::{Args, EXAMPLES, run};
