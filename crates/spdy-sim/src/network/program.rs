//! The programs of the two hosts, which handle arrivals together.
//!
//! A packet does not run a program at once. Its system wakes it, and the program then handles everything that has arrived by then, as
//! after `epoll_wait`. What has arrived together is thus acknowledged and answered together.
//!
//! ```text
//!   packets     p1 p2 p3                  p4
//!   program         ╰── latency ──► p1 p2 p3, p4 ──► its tasks, in the order of the arrivals
//! ```

use std::task::Waker;

use crate::network::endpoint::{EndpointId, OnEstablished};

/// What a program handles.
pub(super) enum Arrival {
    /// A task that waits for a socket or a name can continue.
    Wake(Waker),
    /// A listener has a new connection.
    Accept(OnEstablished, EndpointId),
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
