//! Requests, pushes and hints before a client asks.

mod learning;
mod planted_requests;
mod push_and_hints;
mod requests;
