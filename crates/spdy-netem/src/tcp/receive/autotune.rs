//! The receive window: its announced size, and its growth.
//!
//! Two values limit the announced window. The *buffer* doubles with the bytes that the application reads in a round trip (dynamic
//! right-sizing), so that the window does not limit a sender. The *threshold* begins at the initial window and rises by two segments
//! for each received one, so that a new connection announces little.

use std::time::Duration;

use spdy_clock::Instant;

use crate::segment::MSS_BYTES;
use crate::tcp::config::TcpConfig;

/// Shorter segments do not raise the threshold, bytes.
const LEAST_BYTES: u64 = 128;
/// Assumed bytes that the application read in the round trip before the first.
const FIRST_ROUND_BYTES: u64 = 10 * MSS_BYTES as u64;

#[derive(Clone, Debug)]
pub(crate) struct Autotune {
    buffer_bytes: u64,
    max_buffer_bytes: u64,
    threshold_bytes: u64,
    /// Round trip by the receiver's samples, microseconds times 8.
    rtt_x8_us: u64,
    /// Bytes read in all; start of the current round in time and in bytes; bytes read in the last round.
    read_bytes: u64,
    round_start: Instant,
    round_start_bytes: u64,
    last_round_bytes: u64,
}

impl Autotune {
    pub(crate) fn new(config: &TcpConfig) -> Self {
        Self {
            buffer_bytes: config.receive_buffer_bytes,
            max_buffer_bytes: config
                .max_receive_buffer_bytes
                .max(config.receive_buffer_bytes),
            threshold_bytes: config.initial_receive_window_bytes,
            rtt_x8_us: 0,
            read_bytes: 0,
            round_start: Instant::ZERO,
            round_start_bytes: 0,
            last_round_bytes: config.initial_receive_window_bytes.min(FIRST_ROUND_BYTES),
        }
    }

    pub(crate) fn start(&mut self, now: Instant) {
        self.round_start = now;
    }

    /// Adds a round-trip sample, from the peer's echo or from a window of data.
    pub(crate) fn sample(&mut self, trip: Duration) {
        let us = u64::try_from(trip.as_micros()).unwrap_or(u64::MAX).max(1);
        self.rtt_x8_us = match self.rtt_x8_us {
            0 => us << 3,
            previous => previous - (previous >> 3) + us,
        };
    }

    /// Handles a segment of `len_bytes` while `held_bytes` are unread; `true` if the window grew.
    pub(crate) fn on_data(&mut self, len_bytes: u64, held_bytes: u64) -> bool {
        let free = self.buffer_bytes.saturating_sub(held_bytes);
        let room = free.saturating_sub(self.threshold_bytes);
        if len_bytes < LEAST_BYTES || room == 0 {
            return false;
        }
        self.threshold_bytes += room.min(2 * (MSS_BYTES as u64).max(len_bytes));
        true
    }

    /// The application read `read_bytes` more at `now`. Once a round trip the buffer is resized.
    pub(crate) fn on_read(&mut self, now: Instant, read_bytes: u64) {
        self.read_bytes += read_bytes;
        let round = Duration::from_micros(self.rtt_x8_us >> 3);
        if round.is_zero() || now - self.round_start < round {
            return;
        }
        let read = self.read_bytes - self.round_start_bytes;
        if read > self.last_round_bytes {
            let mut target_bytes = 2 * read + 16 * MSS_BYTES as u64;
            // The rate may grow by the same amount before the next measurement.
            target_bytes +=
                2 * (target_bytes * (read - self.last_round_bytes) / self.last_round_bytes.max(1));
            self.buffer_bytes = self
                .buffer_bytes
                .max(target_bytes.min(self.max_buffer_bytes));
            self.last_round_bytes = read;
        }
        self.round_start = now;
        self.round_start_bytes = self.read_bytes;
    }

    /// The window to announce, before rounding: zero if less than a segment `full_bytes`, or less than a sixteenth of the buffer, is
    /// free.
    pub(crate) fn window_bytes(&self, held_bytes: u64, full_bytes: u64) -> u64 {
        let free = self.buffer_bytes.saturating_sub(held_bytes);
        let tight = free < self.buffer_bytes / 2;
        if tight && (free < self.buffer_bytes / 16 || free < full_bytes.min(self.buffer_bytes)) {
            return 0;
        }
        free.min(self.threshold_bytes)
    }
}
