//! Captures made by the tests themselves, of connections whose every frame is known.

mod captures;
mod laws;
mod raw;
mod reassembly;
mod support;
mod timeline;
mod tls;
mod websocket;
