//! Requests, pushes and hints before a client asks.

mod learning;
mod push_and_hints;
mod requests;
