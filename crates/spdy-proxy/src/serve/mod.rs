//! The entry: a client's connection, and the handling of one request from lookup to response.

pub mod connection;
pub(crate) mod handle_request;
pub(crate) mod miss;
mod page_hints;
mod push_and_hints;
