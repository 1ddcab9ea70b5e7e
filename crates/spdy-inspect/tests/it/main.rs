//! Captures that the tests generate, with known frames.

mod captures;
mod laws;
mod raw;
mod reassembly;
mod support;
mod timeline;
mod tls;
mod websocket;
