//! The session machine. (Contract)

use bytes::{Bytes, BytesMut};
use spdy_clock::Instant;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;

use crate::config::Config;
use crate::error::OpenError;
use crate::event::Event;

/// What SYN_STREAM says besides its headers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Open { pub priority: Priority, pub associated_to: StreamId, pub unidirectional: bool, pub fin: bool }

/// Counters, for metrics and the lab.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Stats { pub sent_block_plain_bytes: u64, pub sent_block_wire_bytes: u64, pub received_block_plain_bytes: u64, pub received_block_wire_bytes: u64, pub frames_sent: u64, pub frames_received: u64, pub streams_opened: u64, pub streams_accepted: u64 }

/// One endpoint of a SPDY session.
pub struct Session { _private: () }

impl Session {
    pub fn new(config: Config, now: Instant) -> Self { let _ = (config, now); todo!() }

    /// Takes bytes that arrived at `now`. How the stream was cut changes nothing.
    pub fn handle_input(&mut self, now: Instant, bytes: &[u8]) { let _ = (now, bytes); todo!() }
    /// The peer closed its side of the transport.
    pub fn handle_eof(&mut self, now: Instant) { let _ = now; todo!() }
    pub fn poll_timeout(&self) -> Option<Instant> { todo!() }
    pub fn handle_timeout(&mut self, now: Instant) { let _ = now; todo!() }
    pub fn poll_event(&mut self) -> Option<Event> { todo!() }
    /// Appends the next frame to `out`; `false` when there is none to send now.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut BytesMut) -> bool { let _ = (now, out); todo!() }
    /// The session ended and its last frame was taken by `poll_transmit`.
    pub fn is_closed(&self) -> bool { todo!() }
    /// The machine wants no more input for now (its own queues are full): back-pressure for the driver.
    pub fn wants_input(&self) -> bool { todo!() }

    /// Opens a stream: its SYN_STREAM is queued, ids rise in the order of these calls.
    pub fn open(&mut self, headers: &HeaderBlock, open: Open) -> Result<StreamId, OpenError> { let _ = (headers, open); todo!() }
    /// SYN_REPLY.
    pub fn reply(&mut self, id: StreamId, headers: &HeaderBlock, fin: bool) -> bool { let _ = (id, headers, fin); todo!() }
    /// HEADERS.
    pub fn headers(&mut self, id: StreamId, headers: &HeaderBlock, fin: bool) -> bool { let _ = (id, headers, fin); todo!() }
    /// Bytes that `send_data` would queue now; 0 also for a stream that is gone.
    pub fn send_capacity(&self, id: StreamId) -> usize { let _ = id; todo!() }
    /// Queues DATA; `false` if the stream can no longer send.
    pub fn send_data(&mut self, id: StreamId, data: Bytes, fin: bool) -> bool { let _ = (id, data, fin); todo!() }
    /// The owner has used `bytes` of a stream's DATA: credit goes back to the peer.
    pub fn consume(&mut self, id: StreamId, bytes: usize) { let _ = (id, bytes); todo!() }
    /// RST_STREAM; unread DATA is given back to the session window.
    pub fn reset(&mut self, id: StreamId, status: RstStatus) { let _ = (id, status); todo!() }
    pub fn ping(&mut self, now: Instant) { let _ = now; todo!() }
    /// Stops taking streams; open ones go on to their end, then the session closes.
    pub fn shutdown(&mut self, now: Instant) { let _ = now; todo!() }
    /// Ends at once with GOAWAY(INTERNAL_ERROR).
    pub fn abort(&mut self, now: Instant) { let _ = now; todo!() }
    pub fn stats(&self) -> Stats { todo!() }
}
