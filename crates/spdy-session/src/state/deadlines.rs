//! When each wait of a session began: input, output, streams, idleness. The limits are in the configuration.

use spdy_clock::Instant;

/// Since when each thing has been waited for.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Anything came.
    pub(crate) last_received: Instant,
    /// Anything came or left.
    pub(crate) last_activity: Instant,
    /// A frame was begun that is not complete.
    pub(crate) partial_since: Option<Instant>,
    /// DATA that its stream has credit for is queued, and none of it was sent.
    pub(crate) data_waiting_since: Option<Instant>,
    /// Bytes sent since then.
    pub(crate) sent_bytes: usize,
    /// When a stream may have waited for too long: not after the first that has.
    pub(crate) streams: Option<Instant>,
    /// No stream is open.
    pub(crate) idle_since: Option<Instant>,
    /// More RST_STREAM frames are queued than we go on reading with.
    pub(crate) reset_queue_full_since: Option<Instant>,
    /// More events are queued than we go on reading with. The owner is at fault, so nothing is due for it.
    pub(crate) is_event_queue_full: bool,
    /// Nothing is read until our owner has consumed something: the peer is not late with the rest of its frame.
    pub(crate) is_reading_stopped: bool,
}

impl Deadlines {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            last_received: now,
            last_activity: now,
            partial_since: None,
            data_waiting_since: None,
            sent_bytes: 0,
            streams: None,
            idle_since: Some(now),
            reset_queue_full_since: None,
            is_event_queue_full: false,
            is_reading_stopped: false,
        }
    }

    pub(crate) fn record_received(&mut self, now: Instant) {
        (self.last_received, self.last_activity) = (now, now);
    }

    /// A frame, or a piece of DATA, left.
    pub(crate) fn record_sent(&mut self, now: Instant) {
        self.last_activity = now;
    }

    /// Whether the input ends within a frame, and whether it brought any frame, or piece of DATA.
    pub(crate) fn input_is_partial(&mut self, partial: bool, progress: bool, now: Instant) {
        match partial {
            false => self.partial_since = None,
            true if progress => self.partial_since = Some(now),
            // a byte now and then is no progress: that is what a slow writer sends
            true => _ = self.partial_since.get_or_insert(now),
        }
    }

    /// `bytes` of DATA were sent. Fewer than `progress` bytes in all do not count as progress.
    pub(crate) fn record_data_sent(&mut self, bytes: usize, progress: usize, now: Instant) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= progress {
            (self.data_waiting_since, self.sent_bytes) = (Some(now), 0);
        }
    }

    /// A stream may have waited for too long at `due`.
    pub(crate) fn look_at_streams(&mut self, due: Instant) {
        self.streams = Some(self.streams.map_or(due, |current| current.min(due)));
    }
}

/// Starts, keeps or stops a wait.
pub(crate) fn track_wait(since: &mut Option<Instant>, waits: bool, now: Instant) {
    match waits {
        true => _ = since.get_or_insert(now),
        false => *since = None,
    }
}
