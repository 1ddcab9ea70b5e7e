//! Budgets: how much nonsense a peer may send before the session ends.
//!
//! Each class is counted in windows of fixed length that start with their first frame. An honest
//! peer stays far below; one past the limit ends the session. What is bounded by the length of a
//! queue instead of a rate (PING echoes, RST_STREAM) is bounded where the queue is.

use spdy_clock::Instant;

use crate::config::FloodLimits;
use crate::error::{Flood, SessionError};

/// One class of frames.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    started: Instant,
    count: u32,
}

impl Tally {
    /// Counts one more at `now`; how many there are in this window.
    fn add(&mut self, now: Instant, limits: &FloodLimits) -> u32 {
        if self.count == 0 || now - self.started >= limits.window {
            *self = Self {
                started: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(1);
        self.count
    }
}

/// What the peer has spent.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: FloodLimits,
    empty: Tally,
    settings: Tally,
    refused: Tally,
    stray: Tally,
    /// The window in which streams opened and streams spoiled are compared.
    spoiled_since: Instant,
    opened: u32,
    spoiled: u32,
}

impl Budget {
    pub(crate) fn new(limits: FloodLimits) -> Self {
        let none = Tally::default();
        Self {
            limits,
            empty: none,
            settings: none,
            refused: none,
            stray: none,
            spoiled_since: Instant::ZERO,
            opened: 0,
            spoiled: 0,
        }
    }

    /// A frame that carries nothing.
    pub(crate) fn empty_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.empty.add(now, &self.limits);
        within(count, self.limits.empty_frames, Flood::EmptyFrames)
    }

    /// A SETTINGS frame.
    pub(crate) fn settings_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.settings.add(now, &self.limits);
        within(count, self.limits.settings_frames, Flood::Settings)
    }

    /// A stream refused for want of room.
    pub(crate) fn refused_stream(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.refused.add(now, &self.limits);
        within(count, self.limits.refused_streams, Flood::RefusedStreams)
    }

    /// A frame for a stream that is not there, which we answer.
    pub(crate) fn stray_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.stray.add(now, &self.limits);
        within(count, self.limits.stray_frames, Flood::StrayFrames)
    }

    /// The peer opened a stream.
    pub(crate) fn opened_stream(&mut self, now: Instant) {
        self.turn_spoiled_window(now);
        self.opened = self.opened.saturating_add(1);
    }

    /// A stream of the peer was reset before our answer was complete.
    pub(crate) fn spoiled_stream(&mut self, now: Instant) -> Result<(), SessionError> {
        self.turn_spoiled_window(now);
        self.spoiled = self.spoiled.saturating_add(1);
        if self.spoiled > self.opened / 2 {
            return within(
                self.spoiled,
                self.limits.spoiled_streams,
                Flood::SpoiledStreams,
            );
        }
        Ok(())
    }

    fn turn_spoiled_window(&mut self, now: Instant) {
        if now - self.spoiled_since >= self.limits.window {
            (self.spoiled_since, self.opened, self.spoiled) = (now, 0, 0);
        }
    }
}

fn within(count: u32, limit: u32, flood: Flood) -> Result<(), SessionError> {
    if count > limit {
        Err(SessionError::Flood { flood, limit })
    } else {
        Ok(())
    }
}
