//! The pool and its clients among servers in one process.

mod client;
mod ip_pooling;
mod kept_connections;
mod pool;
mod support;
mod uploads;
