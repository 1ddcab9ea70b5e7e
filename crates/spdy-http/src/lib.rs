//! HTTP over a SPDY session: the mapping of messages to header blocks and DATA.
//!
//! The semantics are those of HTTP/1.1; only the encoding differs. [`request`] and [`response`] convert the heads of the `http`
//! crate to header blocks and back, [`header_names`] decides which headers are sent, [`push`] maps a pushed stream to its URL,
//! [`trailers`] handles HEADERS after a head, [`urgency`] chooses a priority for a response, [`content_length`] checks
//! content-length, and [`http1_text`] computes the length of a head in HTTP/1.1. Streams, sessions and I/O are in the crates `spdy`
//! and `spdy-session`.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

mod block_writer;
pub mod content_length;
pub mod header_names;
pub mod headers;
pub mod http1_text;
pub mod push;
pub mod request;
pub mod response;
pub mod trailers;
pub mod urgency;
