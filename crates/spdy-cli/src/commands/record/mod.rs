//! `spdy record`: records pages from a live browser, byte for byte.

mod browser;
mod command;
pub(crate) mod report;

#[cfg(feature = "accelerate")]
pub(crate) use browser::{BrowserArgs, record_once};
pub(crate) use command::{Args, EXAMPLES, run};
