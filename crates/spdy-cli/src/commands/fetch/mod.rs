//! `spdy fetch`: URLs to bodies over one client, with redirects, pushes, and a view of the frames.

mod command;
mod file_names;
mod frame_printer;
mod push;
mod redirect;
mod request;
pub(crate) mod result;
mod transfer;

pub(crate) use command::{Args, EXAMPLES, run};
