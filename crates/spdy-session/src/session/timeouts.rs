//! The timeouts of a session: when the next one expires, and how it is handled.
//!
//! Each timeout is an instant at which a wait began, plus a duration of the configuration. Timeouts need not be exact: they are for
//! peers that stall.

use std::collections::VecDeque;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_frame::status::RstStatus;

use crate::error::SessionError;
use crate::event::ResetCause;
use crate::limit::Limit;
use crate::session::endpoint::Session;
use crate::state::deadlines::track_wait;
use crate::state::stream::State;

/// Capacity of the event queue that a session without streams keeps.
const MAX_IDLE_EVENTS: usize = 32;

/// How long a session without streams keeps the memory of its last burst: the next burst often follows at once.
const BURST_MEMORY_TIMEOUT: Duration = Duration::from_secs(1);

/// Bytes that a peer can buffer for a stalled program while it still reads: the capacity of a pipe in Linux.
const PIPE_BYTES: u64 = 64 * 1024;

impl Session {
    /// Updates the instants at which the session began to wait.
    pub(crate) fn update_waits(&mut self) {
        let now = self.now;
        let waits = self.outbound.data_waits();
        track_wait(&mut self.deadlines.data_waiting_since, waits, now);
        if !waits {
            self.deadlines.sent_bytes = 0;
        }
        track_wait(
            &mut self.deadlines.idle_since,
            self.streams.active() == 0,
            now,
        );
        let is_control_queue_full = self.outbound.resets.len() > self.config.control_queue_frames;
        if is_control_queue_full && self.deadlines.reset_queue_full_since.is_none() {
            self.stats.limits.count(Limit::ControlQueue);
        }
        track_wait(
            &mut self.deadlines.reset_queue_full_since,
            is_control_queue_full,
            now,
        );
        let is_event_queue_full = self.events.len() > self.config.event_queue;
        if is_event_queue_full && !self.deadlines.is_event_queue_full {
            self.stats.limits.count(Limit::EventQueue);
        }
        self.deadlines.is_event_queue_full = is_event_queue_full;
        let stopped = self.is_full();
        if self.deadlines.is_reading_stopped && !stopped {
            self.pings.restart_wait(now);
            if self.deadlines.partial_since.is_some() {
                self.deadlines.partial_since = Some(now); // the rest of it could not arrive before
            }
        }
        self.deadlines.is_reading_stopped = stopped;
    }

    /// True if memory of a burst of streams can be returned.
    pub(crate) fn has_burst_memory(&self) -> bool {
        self.has_events_memory() || self.streams.has_burst_memory()
    }

    fn has_events_memory(&self) -> bool {
        self.events.is_empty() && self.events.capacity() > MAX_IDLE_EVENTS
    }

    /// Returns the memory of a burst of streams.
    fn release_burst_memory(&mut self) {
        if self.has_events_memory() {
            self.events = VecDeque::new();
        }
        self.streams.release_burst_memory();
    }

    /// The next instant at which [`expire`](Self::expire) has work to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.closing.has_ended() {
            return None;
        }
        let (waits, config) = (&self.deadlines, &self.config);
        let keepalive = config
            .keepalive_interval
            .map(|interval| match self.pings.flight() {
                Some(flight) => flight.requested_at + config.keepalive_timeout,
                None => waits.last_received + interval,
            });
        [
            keepalive,
            waits
                .partial_since
                .filter(|_| !waits.is_reading_stopped)
                .zip(config.frame_timeout)
                .map(|(since, limit)| since + limit),
            waits
                .data_waiting_since
                .zip(config.write_timeout)
                .map(|(since, limit)| since + limit),
            waits
                .idle_since
                .zip(config.idle_timeout)
                .map(|(since, limit)| since + limit),
            waits
                .idle_since
                .filter(|_| self.has_burst_memory())
                .map(|since| since + BURST_MEMORY_TIMEOUT),
            config
                .silence_timeout
                .map(|limit| waits.last_activity + limit),
            waits
                .reset_queue_full_since
                .map(|since| since + config.control_queue_timeout),
            self.closing
                .draining
                .zip(config.drain_timeout)
                .map(|(since, limit)| since + limit),
            self.outbound.delay_until,
            self.version_detection.until(),
            waits.streams,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Handles all expired timeouts.
    pub(crate) fn expire(&mut self) {
        let now = self.now;
        let over = |since: Option<Instant>, limit: Option<Duration>| {
            since
                .zip(limit)
                .filter(|&(since, limit)| now >= since + limit)
                .map(|(_, limit)| limit)
        };
        if self.closing.has_ended() {
            return;
        }
        if self.outbound.delay_until.is_some_and(|until| now >= until) {
            self.release_delayed(true);
        }
        if over(self.deadlines.idle_since, Some(BURST_MEMORY_TIMEOUT)).is_some() {
            self.release_burst_memory();
        }
        if self
            .version_detection
            .until()
            .is_some_and(|until| now >= until)
        {
            self.set_version_3();
        }
        let partial = self
            .deadlines
            .partial_since
            .filter(|_| !self.deadlines.is_reading_stopped);
        if let Some(waited) = over(partial, self.config.frame_timeout) {
            return self.fail(SessionError::FrameTimeout { waited });
        }
        if self.deadlines.streams.is_some_and(|due| now >= due)
            && let Err(error) = self.reset_stalled_streams()
        {
            return self.fail(error);
        }
        let waiting = self
            .deadlines
            .data_waiting_since
            .filter(|_| self.outbound.data_waits());
        if let Some(waited) = over(waiting, self.config.write_timeout) {
            return self.fail(SessionError::WriteTimeout { waited });
        }
        let timeout = Some(self.config.control_queue_timeout);
        if let Some(waited) = over(self.deadlines.reset_queue_full_since, timeout) {
            let limit = self.config.control_queue_frames;
            return self.fail(SessionError::ControlQueueTimeout { limit, waited });
        }
        if let Some(waited) = over(self.closing.draining, self.config.drain_timeout) {
            let open_streams = self.streams.active();
            return self.fail(SessionError::DrainTimeout {
                open_streams,
                waited,
            });
        }
        if over(self.deadlines.idle_since, self.config.idle_timeout).is_some() {
            self.stats.limits.count(Limit::IdleTimeout);
            return self.end();
        }
        let last_activity = Some(self.deadlines.last_activity);
        if let Some(waited) = over(last_activity, self.config.silence_timeout) {
            return self.fail(SessionError::SilenceTimeout { waited });
        }
        self.keep_alive();
    }

    /// Resets the streams that have stalled for too long, and computes when the next one expires.
    fn reset_stalled_streams(&mut self) -> Result<(), SessionError> {
        self.deadlines.streams = None;
        for id in self.streams.ids() {
            let Some(stream) = self.streams.get(id) else {
                continue;
            };
            let starved =
                stream
                    .starved
                    .zip(self.config.write_timeout)
                    .map(|((since, _), waited)| {
                        let cause = ResetCause::Stalled { waited };
                        (since + waited, Limit::StreamWriteTimeout, cause)
                    });
            let discarded = stream
                .discarded
                .filter(|_| stream.state == State::HalfClosedLocal)
                .zip(self.config.discard_timeout)
                .map(|(discarded, timeout)| {
                    let cause = ResetCause::ByUs(RstStatus::CANCEL);
                    (discarded.since + timeout, Limit::DiscardTimeout, cause)
                });
            match starved.or(discarded) {
                Some((due, limit, cause)) if due <= self.now => {
                    self.stats.limits.count(limit);
                    self.stream_error_with_cause(id, RstStatus::CANCEL, cause)?;
                }
                Some((due, ..)) => self.deadlines.look_at_streams(due),
                None => {}
            }
        }
        Ok(())
    }

    fn keep_alive(&mut self) {
        let Some(interval) = self.config.keepalive_interval else {
            return;
        };
        let (now, last_received) = (self.now, self.deadlines.last_received);
        let timeout = self.config.keepalive_timeout;
        match self.pings.flight() {
            Some(flight) if now < flight.requested_at + timeout => return,
            Some(_)
                if !self.stream_windows
                    && (self.deadlines.is_reading_stopped || self.is_behind_data()) =>
            {
                return self.await_single_echo();
            }
            // no echo, but the peer is alive: Undertow never answers a PING
            Some(flight) if last_received > flight.requested_at => self.pings.forget(),
            Some(_) => return self.fail(SessionError::KeepaliveTimeout { waited: timeout }),
            None => {}
        }
        if now >= last_received + interval {
            self.pings.request(now);
        }
    }

    /// True if our PING is queued, or may be unread, behind DATA that a peer without windows does not read.
    fn is_behind_data(&self) -> bool {
        let sent = self.stats.sent_data_bytes;
        self.outbound.data_bytes > 0 || (sent >= PIPE_BYTES && self.pings.is_behind_data())
    }

    /// Waits for the echo of the one PING in flight. Without windows a PING is answered only after the DATA before it was read, in
    /// both directions. Another PING would wait behind the same DATA, and many PINGs that are then read at once count as a flood.
    fn await_single_echo(&mut self) {
        let (now, last_received) = (self.now, self.deadlines.last_received);
        let is_behind_data = self.is_behind_data();
        let waited = match is_behind_data {
            true => self.config.keepalive_unread_timeout,
            false => self.config.keepalive_timeout,
        };
        // Silence proves nothing while we do not read the answer, or while the PING may be behind DATA that the peer does not read.
        let excused =
            self.deadlines.is_reading_stopped || (is_behind_data && now < last_received + waited);
        let since = if excused { now } else { last_received };
        if now >= since + self.config.keepalive_timeout {
            return self.fail(SessionError::KeepaliveTimeout { waited });
        }
        self.pings.restart_wait(since);
    }
}
