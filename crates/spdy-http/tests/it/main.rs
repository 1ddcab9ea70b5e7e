//! HTTP messages as header blocks, and back.

mod laws;
mod push;
mod requests;
mod responses;
mod support;
mod trailers;
