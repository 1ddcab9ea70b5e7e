//! Heads of requests and responses, for all protocols.

pub mod connection_headers;
pub mod request_head;
