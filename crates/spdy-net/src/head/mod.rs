//! Heads of requests and responses, for all protocols.

pub(crate) mod connection_headers;
pub(crate) mod request_head;
