//! PING: our own, one at a time, and the echoes we owe (SPDY/3.1 §2.6.5).
//!
//! Ids have the parity of the side that sends the PING: odd from the client. The peer's are returned unchanged, ahead
//! of all other output; one of our parity is the answer to ours, or means nothing.

use std::collections::VecDeque;
use std::time::Duration;

use spdy_clock::Instant;

use crate::config::Role;

/// Our ping that is requested or in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingInFlight {
    id: u32,
    /// When it was requested, or written: the start of the timeout for a dead session.
    pub(crate) requested_at: Instant,
    /// When it was written: what the round trip is measured from.
    sent: Option<Instant>,
}

/// What a PING that came was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PingOutcome {
    /// The peer's: an echo is queued.
    Echoed,
    /// The peer's, and as many echoes wait as may.
    TooMany,
    /// The answer to ours.
    Answered(Duration),
    /// Of our parity, but nothing that we sent.
    Ignored,
}

/// The pings of a session.
#[derive(Debug)]
pub(crate) struct Pings {
    parity: u32,
    next_id: u32,
    flight: Option<PingInFlight>,
    /// DATA left before the last one that was written, since one before it was answered.
    behind_data: bool,
    /// DATA left since then.
    data_since: bool,
    echoes: VecDeque<u32>,
    max_echoes: usize,
}

impl Pings {
    pub(crate) fn new(role: Role, max_echoes: usize) -> Self {
        let (parity, next_id) = match role {
            Role::Client => (1, 1),
            Role::Server => (0, 2),
        };
        Self {
            parity,
            next_id,
            flight: None,
            behind_data: false,
            data_since: false,
            echoes: VecDeque::new(),
            max_echoes,
        }
    }

    /// Requests a PING at `now`. A PING in flight serves for both: several in flight only cost the peer (and some
    /// count them as a flood).
    pub(crate) fn request(&mut self, now: Instant) {
        if self.flight.is_none() {
            self.flight = Some(PingInFlight {
                id: self.next_id,
                requested_at: now,
                sent: None,
            });
            // after 2^31 PINGs the IDs start again; 0 is left out, because some peers do not echo it
            self.next_id = match self.next_id.wrapping_add(2) {
                0 => 2,
                next => next,
            };
        }
    }

    /// Requests a PING that is written behind all output so far. It replaces one in flight, whose echo would prove
    /// nothing about later output, and serves for both.
    pub(crate) fn request_behind_data(&mut self, now: Instant) {
        if self.flight.is_some_and(|flight| flight.sent.is_some()) {
            self.flight = None;
        }
        self.request(now);
    }

    /// True if one is requested and not written.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.flight.is_some_and(|flight| flight.sent.is_none())
    }

    pub(crate) fn flight(&self) -> Option<PingInFlight> {
        self.flight
    }

    /// Gives up waiting for an answer: the peer lives, but does not echo.
    pub(crate) fn forget(&mut self) {
        self.flight = None;
    }

    /// Waits for an answer from `now` on: it could not be read before.
    pub(crate) fn restart_wait(&mut self, now: Instant) {
        if let Some(flight) = &mut self.flight {
            flight.requested_at = now;
        }
    }

    /// DATA was sent.
    pub(crate) fn record_data_sent(&mut self) {
        self.data_since = true;
    }

    /// Whether DATA lies before the one under way, or would before one that is written now, of which no echo says that
    /// the peer has read it.
    pub(crate) fn is_behind_data(&self) -> bool {
        let unsent = self.flight.is_none() || self.is_unwritten();
        self.behind_data || (unsent && self.data_since)
    }

    /// A PING came.
    pub(crate) fn receive(&mut self, id: u32, now: Instant) -> PingOutcome {
        if id % 2 != self.parity {
            if self.echoes.len() >= self.max_echoes {
                return PingOutcome::TooMany;
            }
            self.echoes.push_back(id);
            return PingOutcome::Echoed;
        }
        match self.flight {
            Some(PingInFlight {
                id: ours,
                sent: Some(sent),
                ..
            }) if ours == id => {
                self.flight = None;
                self.behind_data = false;
                PingOutcome::Answered(now - sent)
            }
            _ => PingOutcome::Ignored,
        }
    }

    /// The next id to write: echoes, then ours.
    pub(crate) fn next(&mut self, now: Instant) -> Option<u32> {
        if let Some(echo) = self.echoes.pop_front() {
            return Some(echo);
        }
        let flight = self
            .flight
            .as_mut()
            .filter(|flight| flight.sent.is_none())?;
        (flight.requested_at, flight.sent) = (now, Some(now));
        self.behind_data |= std::mem::take(&mut self.data_since);
        Some(flight.id)
    }
}
