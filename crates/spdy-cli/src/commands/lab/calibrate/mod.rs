//! `spdy lab calibrate`: virtual time against the kernel's own TCP: downloads, whole pages, and the link alone.

mod args;
pub(crate) mod command;
mod environment;
pub(crate) mod link;
pub(crate) mod pages;
mod tables;

pub(crate) use args::{Args, EXAMPLES};
pub(crate) use command::run;
pub(crate) use environment::load_average;
pub(crate) use pages::check_kernel_tcp;
pub(crate) use tables::{error_cell, ms_cell};
