//! The name server.

mod answers;
mod server;
mod support;
