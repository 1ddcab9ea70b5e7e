//! Flood limits: how many useless frames a peer may send before the session ends.
//!
//! Each class is counted in windows of fixed length that start with their first frame. Normal peers stay far below; a peer that
//! exceeds a limit ends the session. Frames whose limit is a queue length instead of a rate (PING echoes, RST_STREAM) are limited
//! by their queue.

use spdy_clock::Instant;

use crate::config::FloodLimits;
use crate::error::{Flood, SessionError};

/// The count of one class of frames, or of work.
#[derive(Clone, Copy, Debug, Default)]
struct WindowCount {
    started: Instant,
    count: u64,
}

impl WindowCount {
    /// Counts `more` at `now`. Returns the count of the current window.
    fn add(&mut self, more: u64, now: Instant, limits: &FloodLimits) -> u64 {
        if self.count == 0 || now - self.started >= limits.window {
            *self = Self {
                started: now,
                count: 0,
            };
        }
        self.count = self.count.saturating_add(more);
        self.count
    }
}

/// The counts of all classes.
#[derive(Debug)]
pub(crate) struct FloodBudget {
    limits: FloodLimits,
    empty: WindowCount,
    settings: WindowCount,
    pings: WindowCount,
    refused: WindowCount,
    stray: WindowCount,
    bad_blocks: WindowCount,
    inflated: WindowCount,
    /// Start of the window in which opened and aborted streams are compared.
    aborted_since: Instant,
    opened: u32,
    aborted: u32,
}

impl FloodBudget {
    pub(crate) fn new(limits: FloodLimits) -> Self {
        let none = WindowCount::default();
        Self {
            limits,
            empty: none,
            settings: none,
            pings: none,
            refused: none,
            stray: none,
            bad_blocks: none,
            inflated: none,
            aborted_since: Instant::ZERO,
            opened: 0,
            aborted: 0,
        }
    }

    /// Counts a frame that carries nothing.
    pub(crate) fn empty_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.empty.add(1, now, &self.limits);
        check_limit(count, self.limits.empty_frames, Flood::EmptyFrames)
    }

    /// Counts a SETTINGS frame.
    pub(crate) fn settings_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.settings.add(1, now, &self.limits);
        check_limit(count, self.limits.settings_frames, Flood::Settings)
    }

    /// Counts a PING that is not the answer to ours.
    pub(crate) fn ping_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.pings.add(1, now, &self.limits);
        check_limit(count, self.limits.ping_frames, Flood::PingFrames)
    }

    /// Counts a stream refused because a limit was reached.
    pub(crate) fn refused_stream(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.refused.add(1, now, &self.limits);
        check_limit(count, self.limits.refused_streams, Flood::RefusedStreams)
    }

    /// Counts a frame for an unknown stream, which is answered by RST_STREAM.
    pub(crate) fn stray_frame(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.stray.add(1, now, &self.limits);
        check_limit(count, self.limits.stray_frames, Flood::StrayFrames)
    }

    /// Counts a header block that was inflated but rejected.
    pub(crate) fn refused_block(&mut self, now: Instant) -> Result<(), SessionError> {
        let count = self.bad_blocks.add(1, now, &self.limits);
        check_limit(count, self.limits.refused_blocks, Flood::RefusedBlocks)
    }

    /// Counts `bytes` of an inflated header block, stored or not.
    pub(crate) fn inflated(&mut self, bytes: usize, now: Instant) -> Result<(), SessionError> {
        let count = self.inflated.add(bytes as u64, now, &self.limits);
        check_limit(count, self.limits.inflated_bytes, Flood::InflatedBytes)
    }

    /// Counts a stream that the peer opened.
    pub(crate) fn opened_stream(&mut self, now: Instant) {
        self.roll_aborted_window(now);
        self.opened = self.opened.saturating_add(1);
    }

    /// Counts a stream of the peer that was reset before our answer was complete.
    pub(crate) fn aborted_stream(&mut self, now: Instant) -> Result<(), SessionError> {
        self.roll_aborted_window(now);
        self.aborted = self.aborted.saturating_add(1);
        if self.aborted > self.opened / 2 {
            let (count, limit) = (u64::from(self.aborted), self.limits.aborted_streams);
            return check_limit(count, limit, Flood::AbortedStreams);
        }
        Ok(())
    }

    fn roll_aborted_window(&mut self, now: Instant) {
        if now - self.aborted_since >= self.limits.window {
            (self.aborted_since, self.opened, self.aborted) = (now, 0, 0);
        }
    }
}

fn check_limit(count: u64, limit: impl Into<u64>, flood: Flood) -> Result<(), SessionError> {
    let limit = limit.into();
    if count > limit {
        Err(SessionError::Flood { flood, limit })
    } else {
        Ok(())
    }
}
