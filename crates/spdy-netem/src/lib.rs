//! A network without I/O: links, and a packet-level model of TCP. (Contract)

pub mod link;
pub mod segment;
pub mod tcp;
pub mod profile;
// to come: rate.rs, queue.rs, loss.rs, rng.rs, cubic.rs, rack.rs, rtt.rs, ... as the code asks
