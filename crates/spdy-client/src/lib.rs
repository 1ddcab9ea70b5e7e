//! Requests by origin: pool, limits, retries, time-outs. (Contract)

pub mod client;
pub mod timing;
// to come: origin.rs, pool.rs (which request goes on which connection: a machine without I/O), retry.rs, error.rs, config.rs
