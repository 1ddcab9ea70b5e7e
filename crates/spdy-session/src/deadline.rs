//! What the hour brings: every time limit of a session, in one place.
//!
//! Each limit is an instant since which something has been waited for, and a duration of the
//! configuration. Nothing here is exact to the frame: limits are for peers that stall.

use spdy_clock::Instant;
use spdy_frame::status::RstStatus;

use crate::error::SessionError;
use crate::event::ResetCause;
use crate::limit::Limit;
use crate::session::Session;
use crate::stream::State;

/// What may lie before a program that does not read, while the peer reads on, bytes: a pipe of Linux holds so much.
const PIPE_BYTES: u64 = 64 * 1024;

/// Since when each thing has been waited for.
#[derive(Debug)]
pub(crate) struct Deadlines {
    /// Anything came.
    last_heard: Instant,
    /// Anything came or left.
    last_crossed: Instant,
    /// A frame was begun that is not complete.
    partial: Option<Instant>,
    /// DATA that its stream has credit for is queued, and none of it left.
    waiting: Option<Instant>,
    /// What left since then, bytes.
    left: usize,
    /// When a stream may have waited for too long: not after the first that has.
    streams: Option<Instant>,
    /// No stream is open.
    idle: Option<Instant>,
    /// More RST_STREAM frames are queued than we go on reading with.
    stuffed: Option<Instant>,
    /// More events are queued than we go on reading with. The owner is at fault, so nothing is due for it.
    unheard: bool,
    /// Nothing is read until our owner has consumed something: the peer is not late with the rest of its frame.
    stopped: bool,
}

impl Deadlines {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            last_heard: now,
            last_crossed: now,
            partial: None,
            waiting: None,
            left: 0,
            streams: None,
            idle: Some(now),
            stuffed: None,
            unheard: false,
            stopped: false,
        }
    }

    pub(crate) fn heard(&mut self, now: Instant) {
        (self.last_heard, self.last_crossed) = (now, now);
    }

    /// A frame, or a piece of DATA, left.
    pub(crate) fn said(&mut self, now: Instant) {
        self.last_crossed = now;
    }

    /// Whether the input ends within a frame, and whether it brought any frame, or piece of DATA.
    pub(crate) fn input_is_partial(&mut self, partial: bool, progress: bool, now: Instant) {
        match partial {
            false => self.partial = None,
            true if progress => self.partial = Some(now),
            // a byte now and then is no progress: that is what a slow writer sends
            true => _ = self.partial.get_or_insert(now),
        }
    }

    /// `bytes` of DATA left; fewer than `progress` together are none.
    pub(crate) fn data_left(&mut self, bytes: usize, progress: usize, now: Instant) {
        self.left += bytes;
        if self.left >= progress {
            (self.waiting, self.left) = (Some(now), 0);
        }
    }

    /// A stream may have waited for too long at `due`.
    pub(crate) fn look_at_streams(&mut self, due: Instant) {
        self.streams = Some(self.streams.map_or(due, |known| known.min(due)));
    }
}

/// Starts, keeps or stops a wait.
fn note(since: &mut Option<Instant>, waits: bool, now: Instant) {
    match waits {
        true => _ = since.get_or_insert(now),
        false => *since = None,
    }
}

impl Session {
    /// Notes what is waited for from now on.
    pub(crate) fn update_waits(&mut self) {
        let now = self.now;
        let waits = self.outbound.data_waits();
        note(&mut self.deadlines.waiting, waits, now);
        if !waits {
            self.deadlines.left = 0;
        }
        note(&mut self.deadlines.idle, self.streams.active() == 0, now);
        let stuffed = self.outbound.resets.len() > self.config.control_queue_frames;
        if stuffed && self.deadlines.stuffed.is_none() {
            self.stats.limits.count(Limit::ControlQueue);
        }
        note(&mut self.deadlines.stuffed, stuffed, now);
        let unheard = self.events.len() > self.config.event_queue;
        if unheard && !self.deadlines.unheard {
            self.stats.limits.count(Limit::EventQueue);
        }
        self.deadlines.unheard = unheard;
        let stopped = self.is_full();
        if self.deadlines.stopped && !stopped {
            self.pings.restart_wait(now);
            if self.deadlines.partial.is_some() {
                self.deadlines.partial = Some(now); // the rest of it could not come before
            }
        }
        self.deadlines.stopped = stopped;
    }

    /// The next instant at which [`expire`](Self::expire) has something to do.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.closing.has_ended() {
            return None;
        }
        let (waits, config) = (&self.deadlines, &self.config);
        let keepalive = config
            .keepalive_interval
            .map(|interval| match self.pings.flight() {
                Some(flight) => flight.asked + config.keepalive_timeout,
                None => waits.last_heard + interval,
            });
        [
            keepalive,
            waits
                .partial
                .filter(|_| !waits.stopped)
                .zip(config.frame_timeout)
                .map(|(since, limit)| since + limit),
            waits
                .waiting
                .zip(config.write_timeout)
                .map(|(since, limit)| since + limit),
            waits
                .idle
                .zip(config.idle_timeout)
                .map(|(since, limit)| since + limit),
            config
                .silence_timeout
                .map(|limit| waits.last_crossed + limit),
            waits
                .stuffed
                .map(|since| since + config.control_queue_timeout),
            self.closing
                .draining
                .zip(config.drain_timeout)
                .map(|(since, limit)| since + limit),
            self.outbound.hold_until,
            self.undecided.until(),
            waits.streams,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Does what is due.
    pub(crate) fn expire(&mut self) {
        let now = self.now;
        let over = |since: Option<Instant>, limit: Option<std::time::Duration>| {
            since
                .zip(limit)
                .filter(|&(since, limit)| now >= since + limit)
                .map(|(_, limit)| limit)
        };
        if self.closing.has_ended() {
            return;
        }
        if self.outbound.hold_until.is_some_and(|until| now >= until) {
            self.release_delayed(true);
        }
        if self.undecided.until().is_some_and(|until| now >= until) {
            self.set_version_3();
        }
        let partial = self.deadlines.partial.filter(|_| !self.deadlines.stopped);
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
            .waiting
            .filter(|_| self.outbound.data_waits());
        if let Some(waited) = over(waiting, self.config.write_timeout) {
            return self.fail(SessionError::WriteTimeout { waited });
        }
        let patience = Some(self.config.control_queue_timeout);
        if let Some(waited) = over(self.deadlines.stuffed, patience) {
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
        if over(self.deadlines.idle, self.config.idle_timeout).is_some() {
            self.stats.limits.count(Limit::IdleTimeout);
            return self.end();
        }
        let crossed = Some(self.deadlines.last_crossed);
        if let Some(waited) = over(crossed, self.config.silence_timeout) {
            return self.fail(SessionError::SilenceTimeout { waited });
        }
        self.keep_alive();
    }

    /// Resets the streams that have stood still for too long, and finds out when the next one will have.
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
                .map(|(discarded, patience)| {
                    let cause = ResetCause::ByUs(RstStatus::CANCEL);
                    (discarded.since + patience, Limit::DiscardTimeout, cause)
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
        let (now, heard) = (self.now, self.deadlines.last_heard);
        let patience = self.config.keepalive_timeout;
        match self.pings.flight() {
            Some(flight) if now < flight.asked + patience => return,
            Some(_)
                if !self.stream_windows && (self.deadlines.stopped || self.is_behind_data()) =>
            {
                return self.await_single_echo();
            }
            // no echo, but the peer lives: Undertow never answers a PING
            Some(flight) if heard > flight.asked => self.pings.forget(),
            Some(_) => return self.fail(SessionError::KeepaliveTimeout { waited: patience }),
            None => {}
        }
        if now >= heard + interval {
            self.pings.ask(now);
        }
    }

    /// Whether our PING waits, or may lie unread, behind DATA that a peer without windows does not read.
    fn is_behind_data(&self) -> bool {
        let sent = self.stats.sent_data_bytes;
        self.outbound.data_bytes > 0 || (sent >= PIPE_BYTES && self.pings.lie_behind_data())
    }

    /// Without windows a PING is answered once it is read, by us and by the peer. Another would only lie behind it,
    /// and many that are read at once are a flood.
    fn await_single_echo(&mut self) {
        let (now, heard) = (self.now, self.deadlines.last_heard);
        let is_behind_data = self.is_behind_data();
        let waited = match is_behind_data {
            true => self.config.keepalive_unread_timeout,
            false => self.config.keepalive_timeout,
        };
        // Silence says nothing while an answer is not read, or may lie behind what the peer does not read.
        let excused = self.deadlines.stopped || (is_behind_data && now < heard + waited);
        let since = if excused { now } else { heard };
        if now >= since + self.config.keepalive_timeout {
            return self.fail(SessionError::KeepaliveTimeout { waited });
        }
        self.pings.restart_wait(since);
    }
}
