//! `spdy accelerate audit`: which resources of a page an accelerator would proxy, and how much time that saves.

pub(crate) mod command;
mod crawl;
mod crawl_budget;
mod crawl_network;
mod page;
mod report;

pub(crate) use command::{Args, EXAMPLES, run};
