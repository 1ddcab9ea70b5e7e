//! The programs of the two hosts, which handle arrivals together.
//!
//! A packet does not run a program at once. The operating system wakes the program, which handles everything that has arrived by then,
//! as after `epoll_wait`. What has arrived together is thus acknowledged and answered together. All servers are one program, with the name
//! server.
//!
//! ```text
//!   packets     p1 p2      p3            p4 p5
//!   program     ╰─ latency ──► p1 p2 p3  ╰─ latency ──► p4 p5     its tasks run in the order of the arrivals
//! ```

use std::task::Waker;

use crate::network::endpoint::{EndpointId, OnEstablished};

/// What a program handles.
pub(super) enum Arrival {
    /// A task that waits for a socket or a name can continue: by a packet, or by a timer of TCP that ended the connection.
    Wake(Waker),
    /// A listener has a new connection.
    Accept(OnEstablished, EndpointId),
    /// The name server has the query with this number.
    Query(usize),
}

/// The arrivals that a program has not handled yet.
#[derive(Default)]
pub(super) struct Program {
    arrivals: Vec<Arrival>,
    /// Empty, with the memory of earlier arrivals.
    spare: Vec<Arrival>,
}

impl Program {
    /// Adds an arrival. True if it is the first, so that the program must be woken.
    pub(super) fn add(&mut self, arrival: Arrival) -> bool {
        self.arrivals.push(arrival);
        self.arrivals.len() == 1
    }

    pub(super) fn is_empty(&self) -> bool {
        self.arrivals.is_empty()
    }

    /// Takes all arrivals.
    pub(super) fn take(&mut self) -> Vec<Arrival> {
        let spare = std::mem::take(&mut self.spare);
        std::mem::replace(&mut self.arrivals, spare)
    }

    /// Stores more arrivals in the memory of `handled`, which is empty.
    pub(super) fn reuse(&mut self, handled: Vec<Arrival>) {
        self.spare = handled;
    }
}
