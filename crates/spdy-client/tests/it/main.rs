//! The pool and its clients among servers in one process.

mod client;
mod failures;
mod ip_pooling;
mod pool;
mod pool_laws;
mod pool_sharing;
mod protocols;
mod retries;
mod reused_connections;
mod support;
mod uploads;
