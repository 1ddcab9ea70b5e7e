//! A path between a client's side and the servers' side: one pipe each way, or one shared pipe. (Contract)

use std::time::Duration;

use spdy_clock::Instant;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Way { Up, Down }

/// What happened to a packet that was offered to the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It arrives then.
    Arrives(Instant),
    /// The queue was full.
    QueueFull,
    /// Chance took it.
    Lost,
}

/// Settings of a path: rates, delay, jitter, queue, loss, topology (two pipes | one shared pipe, `passes`).
#[derive(Clone, Debug, PartialEq)]
pub struct PathConfig { pub up_bps: u64, pub down_bps: u64, pub rtt: Duration, /* jitter, loss_up/down, queue (packets|bytes), topology.. */ }

/// The path itself, with its queues and its seeded chance.
pub struct Path { _private: () }
impl Path {
    pub fn new(config: &PathConfig, seed: u64) -> Self { let _ = (config, seed); todo!() }
    /// Offers a packet of `len_bytes` (IP header included) at `now`. Calls come in order of `now`.
    pub fn offer(&mut self, now: Instant, way: Way, len_bytes: usize) -> Verdict { let _ = (now, way, len_bytes); todo!() }
}
