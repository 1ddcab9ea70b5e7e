//! Two machines with a link between them, in virtual time.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use spdy_clock::Instant;
use spdy_frame::version::Version;
use spdy_session::config::{Config, Role};
use spdy_session::event::Event;
use spdy_session::session::Session;

/// One machine and what is on its way to it.
pub struct End {
    pub session: Session,
    pub events: Vec<Event>,
    arriving: VecDeque<(Instant, BytesMut)>,
}

impl End {
    fn new(config: Config) -> Self {
        let session = Session::new(config, Instant::ZERO);
        Self {
            session,
            events: Vec::new(),
            arriving: VecDeque::new(),
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        let arrival = self.arriving.front().map(|(at, _)| *at);
        arrival.into_iter().chain(self.session.poll_timeout()).min()
    }
}

pub struct Pair {
    pub now: Instant,
    pub one_way: Duration,
    pub client: End,
    pub server: End,
}

impl Pair {
    pub fn one_way(one_way: Duration) -> Self {
        let config = |role| Config::new(role, Version::V31);
        Self::new(config(Role::Client), config(Role::Server), one_way)
    }

    pub fn new(client: Config, server: Config, one_way: Duration) -> Self {
        let (client, server) = (End::new(client), End::new(server));
        Self {
            now: Instant::ZERO,
            one_way,
            client,
            server,
        }
    }

    /// Runs until `end`, or until nothing is left to wait for.
    pub fn run_until(&mut self, end: Instant) {
        while self.step(end) {}
    }

    pub fn run(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    /// Transfers all due bytes, then advances the time to the next arrival or timeout; `false` past `end`.
    fn step(&mut self, end: Instant) -> bool {
        exchange(self.now, self.one_way, &mut self.client, &mut self.server);
        exchange(self.now, self.one_way, &mut self.server, &mut self.client);
        let wakes = [&self.client, &self.server].map(End::next_wake);
        let next = wakes.into_iter().flatten().min().unwrap_or(end);
        let has_more = next < end;
        self.now = self.now.max(next.min(end));
        has_more
    }
}

/// Gives `from` what has arrived, and puts what it writes on its way to `to`.
fn exchange(now: Instant, one_way: Duration, from: &mut End, to: &mut End) {
    while from.arriving.front().is_some_and(|(at, _)| *at <= now) {
        let (_, bytes) = from.arriving.pop_front().expect("it is not empty");
        from.session.handle_input(now, &bytes);
    }
    if from.session.poll_timeout().is_some_and(|due| due <= now) {
        from.session.handle_timeout(now);
    }
    let mut wire = BytesMut::new();
    while from.session.poll_transmit(now, &mut wire) {}
    if !wire.is_empty() {
        to.arriving.push_back((now + one_way, wire));
    }
    from.events
        .extend(std::iter::from_fn(|| from.session.poll_event()));
}
