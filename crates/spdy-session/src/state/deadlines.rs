//! The start of each wait of a session: input, output, streams, idleness. The durations are in the configuration.

use spdy_clock::Instant;

/// When each wait began.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Last time anything was received.
    pub(crate) last_received: Instant,
    /// Last time anything was received or sent.
    pub(crate) last_activity: Instant,
    /// When an incomplete frame began.
    pub(crate) partial_since: Option<Instant>,
    /// Since when DATA with credit of its stream is queued and none of it was sent.
    pub(crate) data_waiting_since: Option<Instant>,
    /// DATA bytes sent since then.
    pub(crate) sent_bytes: usize,
    /// The earliest time at which a stream may have stalled for too long.
    pub(crate) streams: Option<Instant>,
    /// Since when no stream is open.
    pub(crate) idle_since: Option<Instant>,
    /// Since when more RST_STREAM frames are queued than `control_queue_frames`.
    pub(crate) reset_queue_full_since: Option<Instant>,
    /// True if more events are queued than `event_queue`. This is the owner's fault, so it has no timeout.
    pub(crate) is_event_queue_full: bool,
    /// True while nothing is read until the owner consumes DATA: the peer is then not late with the rest of a frame.
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

    /// Records a sent frame, or a piece of DATA.
    pub(crate) fn record_sent(&mut self, now: Instant) {
        self.last_activity = now;
    }

    /// Records whether the input ends within a frame (`partial`), and whether it completed a frame or a piece of DATA (`progress`).
    pub(crate) fn input_is_partial(&mut self, partial: bool, progress: bool, now: Instant) {
        match partial {
            false => self.partial_since = None,
            true if progress => self.partial_since = Some(now),
            // occasional single bytes are not progress: a slowloris client sends them
            true => _ = self.partial_since.get_or_insert(now),
        }
    }

    /// Records `bytes` of sent DATA. Fewer than `progress` bytes in total do not count as progress.
    pub(crate) fn record_data_sent(&mut self, bytes: usize, progress: usize, now: Instant) {
        self.sent_bytes += bytes;
        if self.sent_bytes >= progress {
            (self.data_waiting_since, self.sent_bytes) = (Some(now), 0);
        }
    }

    /// Schedules a check of the streams at `due`.
    pub(crate) fn look_at_streams(&mut self, due: Instant) {
        self.streams = Some(self.streams.map_or(due, |current| current.min(due)));
    }
}

/// Starts, continues or stops a wait.
pub(crate) fn track_wait(since: &mut Option<Instant>, waits: bool, now: Instant) {
    match waits {
        true => _ = since.get_or_insert(now),
        false => *since = None,
    }
}
