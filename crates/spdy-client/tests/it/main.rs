//! The pool and its clients among servers in one process.

mod client;
mod ip_pooling;
mod pool;
mod reused_connections;
mod support;
mod uploads;
