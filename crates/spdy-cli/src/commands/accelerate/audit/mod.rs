//! `spdy accelerate audit`: what an accelerator would do for a page, and what that would save.

mod command;
mod crawl;
mod crawl_budget;
mod crawl_network;
mod page;
mod report;

pub(crate) use command::{Args, EXAMPLES, run};
