//! The receiving half: received data, acknowledgements, and the announced window.

use std::time::Duration;

use bytes::{Buf, Bytes};
use spdy_clock::Instant;

use super::autotune::Autotune;
use super::delayed_ack::DelayedAck;
use super::reassembly::Reassembly;
use crate::segment::{SackBlocks, Segment};
use crate::tcp::config::TcpConfig;
use crate::tcp::recovery::ack::clock_ms;

/// Maximum window without a scale, bytes.
const UNSCALED_WINDOW_BYTES: u64 = 65_535;

#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Next expected sequence number.
    pub(crate) next: u64,
    /// Next expected sequence number in the last sent acknowledgement.
    pub(crate) acked: u64,
    /// End of the announced window; it never moves back.
    edge: u64,
    scale: Option<u8>,
    reassembly: Reassembly,
    pub(crate) delayed: DelayedAck,
    autotune: Autotune,
    /// The peer's timestamp, for the echo; and our last echoed timestamp that gave a round trip.
    pub(crate) peer_clock_ms: u64,
    last_echo_ms: u64,
    /// Sequence number of the peer's FIN, once received, and whether everything before it was received.
    fin_at: Option<u64>,
    pub(crate) fin_reached: bool,
}

impl Receiver {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        Self {
            next: 0,
            acked: 0,
            edge: 0,
            scale: None,
            reassembly: Reassembly::default(),
            delayed: DelayedAck::new(config),
            autotune: Autotune::new(config),
            peer_clock_ms: 0,
            last_echo_ms: 0,
            fin_at: None,
            fin_reached: false,
        }
    }

    /// Handles the peer's SYN: 1 is next.
    pub(crate) fn take_syn(&mut self, segment: &Segment) {
        self.next = segment.seq_end();
        self.acked = self.next;
        self.edge = self.edge.max(self.next);
        self.peer_clock_ms = segment.timestamps.map_or(0, |times| times.value_ms);
    }

    /// Ends the handshake; `scale` was negotiated.
    pub(crate) fn start(&mut self, now: Instant, scale: Option<u8>) {
        self.scale = scale;
        self.delayed.start(now);
        self.autotune.start(now);
    }

    pub(crate) fn ready_bytes(&self) -> usize {
        self.reassembly.ready_bytes()
    }

    /// True if any part of `segment` is in the window (RFC 9293 §3.10.7.4).
    pub(crate) fn accepts(&self, segment: &Segment) -> bool {
        segment.seq_end() >= self.acked && segment.seq <= self.edge.max(self.next)
    }

    /// Stores the peer's timestamp (RFC 7323 §4.3) of a segment that begins no later than the last acknowledgement.
    pub(crate) fn note_clock(&mut self, segment: &Segment) {
        if let Some(times) = segment.timestamps.filter(|_| segment.seq <= self.acked) {
            self.peer_clock_ms = self.peer_clock_ms.max(times.value_ms);
        }
    }

    /// Handles payload and FIN of an acceptable segment. `rto` and `srtt` are those of the sender.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        segment: Segment,
        rto: Duration,
        srtt: Option<Duration>,
    ) {
        let len = segment.payload.len() as u64;
        if segment.flags.fin {
            self.fin_at = Some(segment.seq + len);
        }
        if len > 0 {
            self.take_payload(now, segment, rto);
        } else if segment.flags.fin && segment.seq < self.next {
            self.delayed.on_unexpected_segment(self.remaining_window()); // a FIN that was received before
        }
        if self.fin_at == Some(self.next) && !self.fin_reached {
            self.fin_reached = true;
            self.next += 1;
            self.delayed.on_fin();
        }
        let open = self.offered_edge() >= self.edge;
        let holes = self.reassembly.has_holes();
        self.delayed
            .decide(now, self.next - self.acked, open, holes, srtt);
    }

    fn take_payload(&mut self, now: Instant, segment: Segment, rto: Duration) {
        let (seq, len) = (segment.seq, segment.payload.len() as u64);
        let end = seq + len;
        let full_window = self.remaining_window();
        if end <= self.next {
            self.reassembly.note_duplicate(seq, end);
            self.delayed.on_unexpected_segment(full_window);
            return;
        }
        if end > self.edge {
            // Outside the window: the acknowledgement contains the end of the window.
            self.delayed.on_unexpected_segment(full_window);
            return;
        }
        self.time_round_trip(now, &segment);
        let Segment {
            payload: mut bytes,
            flags,
            ..
        } = segment;
        if seq > self.next {
            self.delayed.is_due = true;
            self.reassembly.push_early(seq, bytes);
            return;
        }
        if seq < self.next {
            self.reassembly.note_duplicate(seq, self.next);
            self.delayed.on_unexpected_segment(full_window);
            bytes.advance((self.next - seq) as usize); // below its length
        }
        let had_holes = self.reassembly.has_holes();
        self.delayed
            .on_data(now, end - self.next, flags.psh, rto, full_window);
        self.next = self.reassembly.push_in_order(self.next, bytes);
        if had_holes && !self.reassembly.has_holes() {
            self.delayed.is_urgent = true; // RFC 5681 §4.2: the gap is filled
        }
        let held = self.reassembly.held_bytes() as u64;
        if self.autotune.on_data(len, held) {
            self.delayed.on_window_grown();
        }
    }

    /// Measures the round trip by the peer's echo of our timestamp with data, once for each echo.
    fn time_round_trip(&mut self, now: Instant, segment: &Segment) {
        let Some(times) = segment.timestamps else {
            return;
        };
        let full = segment.payload.len() as u64 >= self.delayed.full_bytes();
        if full && times.echo_ms != self.last_echo_ms && times.echo_ms > 0 {
            self.last_echo_ms = times.echo_ms;
            let trip_ms = clock_ms(now).saturating_sub(times.echo_ms).max(1);
            self.autotune.sample(Duration::from_millis(trip_ms));
        }
    }

    /// Reads up to `max` bytes.
    pub(crate) fn read(&mut self, now: Instant, max: usize) -> Bytes {
        let bytes = self.reassembly.read(max);
        if bytes.is_empty() {
            return bytes;
        }
        self.autotune.on_read(now, bytes.len() as u64);
        self.delayed
            .on_read(self.next - self.acked, self.reassembly.ready_bytes());
        // The window has at least doubled its announced rest: the peer may be waiting for that.
        let (remaining, offered) = (self.remaining_window(), self.offered_edge() - self.next);
        if offered > 0 && offered >= 2 * remaining {
            self.delayed.is_due = true;
            self.delayed.is_urgent = true;
        }
        bytes
    }

    /// The rest of the announced window.
    fn remaining_window(&self) -> u64 {
        self.edge.saturating_sub(self.next)
    }

    /// The end of the window if it were announced now.
    fn offered_edge(&self) -> u64 {
        let held = self.reassembly.held_bytes() as u64;
        let window = self.autotune.window_bytes(held, self.delayed.full_bytes());
        let window = match self.scale {
            Some(scale) => window.next_multiple_of(1 << scale),
            None => window.min(UNSCALED_WINDOW_BYTES),
        };
        self.edge.max(self.next + window)
    }

    /// The window for a SYN: never scaled.
    pub(crate) fn syn_window(&mut self) -> u64 {
        let window = self.autotune.window_bytes(0, 0).min(UNSCALED_WINDOW_BYTES);
        self.edge = self.edge.max(self.next + window);
        window
    }

    /// The window for a segment that is sent now.
    pub(crate) fn announce_window(&mut self) -> u64 {
        self.edge = self.offered_edge();
        let window = self.edge - self.next;
        if self.scale.is_some() {
            window
        } else {
            window.min(UNSCALED_WINDOW_BYTES)
        }
    }

    /// The selective acknowledgements for a segment that is sent now.
    pub(crate) fn take_sack_blocks(&mut self, most: usize) -> SackBlocks {
        self.reassembly.take_blocks(most)
    }

    /// Records that an acknowledgement is sent.
    pub(crate) fn on_ack_sent(&mut self) {
        self.acked = self.next;
        self.delayed.on_sent();
    }

    /// Stops after the end of the connection: nothing more is acknowledged, but data in order can still be read.
    pub(crate) fn stop(&mut self) {
        self.delayed.is_due = false;
        self.delayed.is_urgent = false;
        self.delayed.timer = None;
    }

    /// Responds to an unacceptable segment with the current acknowledgement.
    pub(crate) fn refuse(&mut self, segment: &Segment) {
        if !segment.payload.is_empty() && segment.seq < self.next {
            let end = segment.seq + segment.payload.len() as u64;
            self.reassembly
                .note_duplicate(segment.seq, end.min(self.next));
            self.delayed.on_unexpected_segment(self.remaining_window());
        }
        self.delayed.is_due = true;
        self.delayed.is_urgent = true;
    }
}
