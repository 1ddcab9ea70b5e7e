//! Serves accepted connections: protocol selection, then the server of that protocol.

pub mod negotiate;
mod serve_connection;

pub use serve_connection::{serve_connection, serve_quic};

pub use crate::options::ServerOptions;
