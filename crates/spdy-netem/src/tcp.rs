//! One endpoint of a TCP connection, sans-IO, as Linux would behave (lab.md §3.2). (Contract)

use bytes::{Bytes, BytesMut};
use spdy_clock::Instant;

use crate::segment::Segment;

/// An era and its switches: initial window, cubic|reno, sack, rack, tlp, prr, timestamps, hystart, delayed ack, rto_initial, rwnd ...
#[derive(Clone, Debug, PartialEq)]
pub struct TcpConfig { pub initial_window_segments: u32 }

pub struct Tcp { _private: () }
impl Tcp {
    /// Active open: a SYN is ready.
    pub fn connect(config: TcpConfig, now: Instant) -> Self { let _ = (config, now); todo!() }
    /// Passive open: give it the SYN by `handle_segment`.
    pub fn listen(config: TcpConfig, now: Instant) -> Self { let _ = (config, now); todo!() }
    pub fn handle_segment(&mut self, now: Instant, segment: Segment) { let _ = (now, segment); todo!() }
    pub fn poll_transmit(&mut self, now: Instant) -> Option<Segment> { let _ = now; todo!() }
    pub fn poll_timeout(&self) -> Option<Instant> { todo!() }
    pub fn handle_timeout(&mut self, now: Instant) { let _ = now; todo!() }
    pub fn is_established(&self) -> bool { todo!() }
    /// Bytes that `write` would take now.
    pub fn send_capacity(&self) -> usize { todo!() }
    pub fn write(&mut self, now: Instant, bytes: &[u8]) -> usize { let _ = (now, bytes); todo!() }
    /// Moves up to `max` received bytes, in order; the window opens again.
    pub fn read(&mut self, now: Instant, max: usize) -> Bytes { let _ = (now, max); todo!() }
    pub fn readable_bytes(&self) -> usize { todo!() }
    /// The peer sent FIN and everything before it was read.
    pub fn is_read_closed(&self) -> bool { todo!() }
    /// FIN after what was written.
    pub fn close(&mut self, now: Instant) { let _ = now; todo!() }
    /// RST.
    pub fn abort(&mut self, now: Instant) { let _ = now; todo!() }
    /// Both sides done (or reset): nothing more will be sent.
    pub fn is_closed(&self) -> bool { todo!() }
    /// The peer reset it, or SYN/RTO retries ran out.
    pub fn error(&self) -> Option<std::io::ErrorKind> { todo!() }
}
