//! PING: our own, one at a time, and the queued echoes (SPDY/3.1 §2.6.5).
//!
//! IDs have the parity of the side that sends the PING: odd from the client. The peer's PINGs are returned unchanged, before all
//! other output. A received PING of our parity is the echo of ours, or is ignored.

use std::collections::VecDeque;
use std::time::Duration;

use spdy_clock::Instant;

use crate::config::Role;

/// Our PING that is requested or in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PingInFlight {
    id: u32,
    /// When it was requested or written: the start of the keepalive timeout.
    pub(crate) requested_at: Instant,
    /// When it was written: the start of the round trip.
    sent: Option<Instant>,
}

/// The kind of a received PING.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PingOutcome {
    /// The peer's PING: an echo is queued.
    Echoed,
    /// The peer's PING, but the queue of echoes is full.
    TooMany,
    /// The echo of ours, with the round trip time.
    Answered(Duration),
    /// Of our parity, but not in flight.
    Ignored,
}

/// The pings of a session.
#[derive(Debug)]
pub(crate) struct Pings {
    parity: u32,
    next_id: u32,
    flight: Option<PingInFlight>,
    /// DATA was sent between the last echoed PING and the last written one.
    behind_data: bool,
    /// DATA was sent after the last written PING.
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

    /// Requests a PING at `now`. If one is in flight, it is used for both: several in flight have no benefit (and some peers count
    /// them as a flood).
    pub(crate) fn request(&mut self, now: Instant) {
        if self.flight.is_none() {
            self.flight = Some(PingInFlight {
                id: self.next_id,
                requested_at: now,
                sent: None,
            });
            // after 2^31 PINGs the IDs restart; 0 is skipped, because some peers do not echo it
            self.next_id = match self.next_id.wrapping_add(2) {
                0 => 2,
                next => next,
            };
        }
    }

    /// Requests a PING that is written behind all output so far. It replaces a PING in flight, whose echo would prove nothing about
    /// later output, and is used for both.
    pub(crate) fn request_behind_data(&mut self, now: Instant) {
        if self.flight.is_some_and(|flight| flight.sent.is_some()) {
            self.flight = None;
        }
        self.request(now);
    }

    /// True if a PING is requested and not written yet.
    pub(crate) fn is_unwritten(&self) -> bool {
        self.flight.is_some_and(|flight| flight.sent.is_none())
    }

    pub(crate) fn flight(&self) -> Option<PingInFlight> {
        self.flight
    }

    /// Stops waiting for the echo: the peer is alive, but does not echo.
    pub(crate) fn forget(&mut self) {
        self.flight = None;
    }

    /// Restarts the timeout of the echo at `now`: it could not be read before.
    pub(crate) fn restart_wait(&mut self, now: Instant) {
        if let Some(flight) = &mut self.flight {
            flight.requested_at = now;
        }
    }

    /// Records sent DATA.
    pub(crate) fn record_data_sent(&mut self) {
        self.data_since = true;
    }

    /// True if DATA was sent before the PING in flight (or would be before a PING written now) and no echo has proved that the peer
    /// has read it.
    pub(crate) fn is_behind_data(&self) -> bool {
        let unsent = self.flight.is_none() || self.is_unwritten();
        self.behind_data || (unsent && self.data_since)
    }

    /// Handles a received PING.
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

    /// The ID of the next PING to write: echoes first, then ours.
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
