//! `spdy accelerate audit`: which resources of a page an accelerator would proxy, and how much time that saves.

pub(crate) mod command;
mod crawl;
mod crawl_budget;
mod crawl_network;
mod host_entry;
mod page;
mod picture;
mod report;
mod site_file;

pub(crate) use command::{Args, EXAMPLES, run};
