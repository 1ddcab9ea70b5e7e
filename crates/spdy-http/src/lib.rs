//! HTTP over a SPDY session: how a message is written as header blocks and DATA, and nothing else.
//!
//! Semantics are those of HTTP/1.1; only the writing changes. [`request`] and [`response`] turn the
//! heads of the `http` crate into header blocks and back, [`header_names`] knows which headers travel,
//! [`push`] what a pushed stream is for, [`trailers`] what comes behind a head, [`urgency`] what an answer deserves, [`content_length`] checks
//! content-length, and [`http1_text`] says how long a head would have been in HTTP/1.1. No stream, no
//! session, no I/O: those are the crates `spdy` and `spdy-session`.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

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
