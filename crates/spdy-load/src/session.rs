//! One session: it connects, fills its slots at its pace, and reports results to the tally.
//!
//! ```text
//!  connect --> wait for the start --> run --+--> the budget is spent: done
//!     ^                                     |
//!     `---- the connection ended or closes -'
//! ```

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use spdy_net::network::{Network, SystemNetwork};
use spdy_net::protocol::Protocol;
use tokio::time::Sleep;

use crate::fault::{Fault, FaultKind};
use crate::fine_timer::FineTimer;
use crate::pace::Pace;
use crate::plan::{Length, Plan};
use crate::progress::Progress;
use crate::tally::Tally;
use crate::traffic::Traffic;
use crate::wire::{Event, Wire};

/// Rounds of reading and writing before other sessions run.
const MAX_PASSES: usize = 16;
/// Maximum number of times a request is sent again if the server did not begin with it.
const MAX_RESENT: u8 = 3;
/// Delay before a reconnection to a server that sent no response.
const RECONNECT_DELAY: Duration = Duration::from_millis(100);

/// Start and end of the measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Window {
    /// Start of the load.
    pub(crate) begin: Instant,
    /// End of the warm-up.
    pub(crate) start: Instant,
    /// The end; `None` if requests are counted.
    pub(crate) end: Option<Instant>,
}

/// State that all sessions of a thread share.
pub(crate) struct Shared {
    pub(crate) plan: Arc<Plan>,
    pub(crate) addresses: Arc<[SocketAddr]>,
    pub(crate) progress: Arc<Progress>,
    /// Number of requests that may still be started, if they are counted.
    pub(crate) budget: Arc<AtomicU64>,
    pub(crate) traffic: Rc<Traffic>,
    pub(crate) tally: std::cell::RefCell<Tally>,
}

/// A request in flight, or waiting to be sent again.
#[derive(Clone, Copy, Debug)]
struct PendingRequest {
    /// Index of the target's request.
    number: usize,
    /// Its intended start.
    intended: Instant,
    /// When it was last sent.
    sent: Instant,
    resent: u8,
}

/// One session.
pub(crate) struct Session {
    shared: Rc<Shared>,
    window: Window,
    pace: Pace,
    protocol: Protocol,
    wire: Wire,
    slots: Vec<Option<PendingRequest>>,
    free: Vec<usize>,
    /// Requests to send before new ones.
    backlog: VecDeque<PendingRequest>,
    /// Index of the target's next request.
    next_number: usize,
    /// No request remains in the budget.
    is_budget_spent: bool,
    /// Responses on this connection.
    answers: u64,
    ended: bool,
    events: Vec<Event>,
    timer: Option<Pin<Box<Sleep>>>,
    /// For intended starts, if there are any.
    fine: Option<FineTimer>,
}

/// An open connection.
pub(crate) struct OpenConnection {
    pub(crate) wire: Wire,
    pub(crate) protocol: Protocol,
}

/// Connects, and negotiates the protocol.
pub(crate) async fn connect(shared: &Shared) -> Result<OpenConnection, Fault> {
    let begun = Instant::now();
    let timeout = shared.plan.connect_timeout;
    let connected = tokio::time::timeout(timeout, open_connection(shared))
        .await
        .map_err(|_| {
            Fault::new(
                FaultKind::Connect,
                format_args!("no connection within {timeout:?}"),
            )
        })??;
    let mut tally = shared.tally.borrow_mut();
    tally.set_up.record(begun.elapsed());
    Ok(connected)
}

async fn open_connection(shared: &Shared) -> Result<OpenConnection, Fault> {
    let failed = |error: io::Error| Fault::new(FaultKind::Connect, error);
    let plan = &shared.plan;
    let mut io = Err(failed(io::ErrorKind::AddrNotAvailable.into()));
    for address in shared.addresses.iter() {
        io = SystemNetwork.connect(*address).await.map_err(failed);
        if io.is_ok() {
            break;
        }
    }
    let mut io = io?;
    let mut protocol = plan.protocol.unwrap_or(Protocol::Http1);
    if plan.target.is_secure() {
        let (secured, handshake) = plan
            .tls
            .connect(io, plan.target.host())
            .await
            .map_err(failed)?;
        io = secured;
        let selected = handshake.protocol.unwrap_or(Protocol::Http1);
        if plan.protocol.is_some_and(|expected| expected != selected) {
            let message = format!("the server selected {selected}, expected {protocol}");
            return Err(Fault::new(FaultKind::Connect, message));
        }
        protocol = selected;
    }
    let wire = Wire::start(io, protocol, plan, shared.traffic.clone()).await?;
    Ok(OpenConnection { wire, protocol })
}

/// Why a session stops polling its connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stop {
    /// All requests are done.
    Finished,
    /// The connection has ended, or is drained.
    Reconnect,
}

impl Session {
    /// Session `number`, on an open connection.
    ///
    /// # Errors
    ///
    /// The system has no timer.
    pub(crate) fn new(
        shared: Rc<Shared>,
        number: usize,
        connected: OpenConnection,
        window: Window,
    ) -> io::Result<Self> {
        let plan = &shared.plan;
        let streams = plan.streams_of(connected.protocol);
        let fine = plan.rate.map(|_| FineTimer::new()).transpose()?;
        Ok(Self {
            window,
            pace: Pace::of(plan.rate, number, plan.sessions, window.begin),
            protocol: connected.protocol,
            wire: connected.wire,
            slots: vec![None; streams],
            free: (0..streams).rev().collect(),
            backlog: VecDeque::new(),
            next_number: number % plan.target.requests(),
            is_budget_spent: false,
            answers: 0,
            ended: false,
            events: Vec::new(),
            timer: None,
            fine,
            shared,
        })
    }

    /// Loads the server until the budget is spent, or the connection is lost and no other can be opened.
    pub(crate) async fn run(mut self) {
        loop {
            match poll_fn(|cx| self.poll_run(cx)).await {
                Stop::Finished => return,
                Stop::Reconnect => {}
            }
            if !self.reconnect().await {
                return;
            }
        }
    }

    /// Opens a connection in place of the one that ended; `false` if that fails for as long as the request timeout.
    async fn reconnect(&mut self) -> bool {
        let begun = Instant::now();
        if self.answers == 0 {
            tokio::time::sleep(RECONNECT_DELAY).await;
        }
        loop {
            match connect(&self.shared).await {
                Ok(connected) if connected.protocol == self.protocol => {
                    self.wire = connected.wire;
                    self.answers = 0;
                    self.ended = false;
                    self.tally(|tally| tally.reconnects += 1);
                    return true;
                }
                Ok(connected) => {
                    let message = format!(
                        "the server selected {} on reconnect, expected {}",
                        connected.protocol, self.protocol
                    );
                    self.fault(Fault::new(FaultKind::Connect, message), begun);
                }
                Err(fault) => self.fault(fault, begun),
            }
            if begun.elapsed() > self.shared.plan.timeout {
                return false;
            }
            tokio::time::sleep(RECONNECT_DELAY).await;
        }
    }

    fn poll_run(&mut self, cx: &mut Context<'_>) -> Poll<Stop> {
        let mut events = std::mem::take(&mut self.events);
        let mut stop = None;
        let mut passes = 0;
        while stop.is_none() {
            let mut progress = self.wire.receive(cx, &mut events);
            let now = Instant::now();
            self.handle_events(&mut events, now);
            self.send_requests(cx, now);
            self.wire.flush(cx, &mut events);
            progress |= !events.is_empty();
            self.handle_events(&mut events, now);
            stop = self.stop();
            if !progress && stop.is_none() && !self.wait(cx, now, &mut events) {
                break;
            }
            passes += 1;
            if passes == MAX_PASSES {
                cx.waker().wake_by_ref();
                break;
            }
        }
        self.events = events;
        stop.map_or(Poll::Pending, Poll::Ready)
    }

    fn stop(&mut self) -> Option<Stop> {
        let idle = self.free.len() == self.slots.len();
        if idle && let Length::Requests(_) = self.shared.plan.length {
            self.is_budget_spent |= self.shared.budget.load(Ordering::Relaxed) == 0;
        }
        if idle && self.is_budget_spent && self.backlog.is_empty() {
            Some(Stop::Finished)
        } else if self.ended || idle && self.wire.is_closing() {
            Some(Stop::Reconnect)
        } else {
            None
        }
    }

    /// Sends the requests that are due, as far as there is room.
    fn send_requests(&mut self, cx: &mut Context<'_>, now: Instant) {
        while let Some(&slot) = self.free.last() {
            if self.ended || self.wire.is_closing() {
                return;
            }
            let resent = self.backlog.front().copied();
            let next = resent.or_else(|| self.next_request(now));
            let Some(mut order) = next else {
                return;
            };
            order.sent = now;
            if !self.wire.send(cx, slot, order.number) {
                // The connection reports when it has room; until then the request stays first in the queue.
                if resent.is_none() {
                    self.backlog.push_back(order);
                }
                return;
            }
            if resent.is_some() {
                self.backlog.pop_front();
            }
            self.free.pop();
            self.slots[slot] = Some(order);
        }
    }

    /// A new request, if one is due and the budget allows it.
    fn next_request(&mut self, now: Instant) -> Option<PendingRequest> {
        if self.is_budget_spent || self.pace.next().is_some_and(|next| next > now) {
            return None;
        }
        if let Length::Requests(_) = self.shared.plan.length
            && now >= self.window.start
        {
            let budget = &self.shared.budget;
            let less = |remaining: u64| remaining.checked_sub(1);
            let result = budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            if result.is_err() {
                self.is_budget_spent = true;
                return None;
            }
        }
        let intended = self.pace.take(now)?;
        let number = self.next_number;
        self.next_number = (number + 1) % self.shared.plan.target.requests();
        Some(PendingRequest {
            number,
            intended,
            sent: now,
            resent: 0,
        })
    }

    /// Handles the events of the connection.
    fn handle_events(&mut self, events: &mut Vec<Event>, now: Instant) {
        let (mut answered, mut failed) = (0, 0);
        for event in events.drain(..) {
            match event {
                Event::Answered {
                    slot,
                    status,
                    body_bytes,
                } => {
                    let Some(order) = self.release(slot) else {
                        continue;
                    };
                    self.answers += 1;
                    answered += 1;
                    if self.counts(order.sent, now) {
                        let latency = now.saturating_duration_since(order.intended);
                        let shared = &self.shared;
                        let mut tally = shared.tally.borrow_mut();
                        tally.answer(latency, status, body_bytes, &shared.plan.expect);
                    }
                }
                Event::Lost { slot, fault, again } => {
                    let Some(order) = self.release(slot) else {
                        continue;
                    };
                    if again && self.answers > 0 && order.resent < MAX_RESENT {
                        let resent = order.resent + 1;
                        self.backlog.push_back(PendingRequest { resent, ..order });
                        self.tally(|tally| tally.resent += 1);
                    } else {
                        failed += 1;
                        self.fault(fault, order.sent);
                    }
                }
                Event::Ended => self.ended = true,
            }
        }
        if answered + failed > 0 {
            self.shared.progress.add(answered, failed);
        }
    }

    fn release(&mut self, slot: usize) -> Option<PendingRequest> {
        let order = self.slots[slot].take();
        if order.is_some() {
            self.free.push(slot);
        }
        order
    }

    /// True if a request that was sent at `sent` and ended at `now` is part of the measurement.
    fn counts(&self, sent: Instant, now: Instant) -> bool {
        match self.window.end {
            Some(end) => (self.window.start..end).contains(&now),
            None => sent >= self.window.start,
        }
    }

    fn fault(&self, fault: Fault, since: Instant) {
        if self.counts(since, Instant::now()) {
            self.tally(|tally| tally.fault(fault));
        }
    }

    fn tally(&self, count: impl FnOnce(&mut Tally)) {
        count(&mut self.shared.tally.borrow_mut());
    }

    /// Waits for the next timeout and the next intended start; `true` if one of them has come.
    fn wait(&mut self, cx: &mut Context<'_>, now: Instant, events: &mut Vec<Event>) -> bool {
        let waits_for_time =
            !self.free.is_empty() && !self.is_budget_spent && self.backlog.is_empty();
        if let (Some(due), Some(fine)) = (self.pace.next(), &mut self.fine)
            && waits_for_time
            && fine.poll_until(cx, due).is_ready()
        {
            return true;
        }
        let timeout = self.shared.plan.timeout;
        // A timer that is early is reused: checking every slot each time would cost more than it saves.
        let timer = self.timer.get_or_insert_with(|| {
            let oldest = self.slots.iter().flatten().map(|order| order.sent).min();
            let expires = oldest.unwrap_or(now) + timeout;
            Box::pin(tokio::time::sleep_until(expires.into()))
        });
        let fired = timer.as_mut().poll(cx).is_ready();
        if fired {
            self.timer = None;
            self.expire(Instant::now(), events);
        }
        fired
    }

    /// Cancels requests past their timeout.
    fn expire(&mut self, now: Instant, events: &mut Vec<Event>) {
        let timeout = self.shared.plan.timeout;
        for slot in 0..self.slots.len() {
            let expired = self.slots[slot]
                .filter(|order| now.saturating_duration_since(order.sent) >= timeout);
            if let Some(order) = expired {
                self.release(slot);
                self.wire.cancel(slot, events);
                let message = format_args!("no response within {timeout:?}").to_string();
                self.fault(Fault::new(FaultKind::Timeout, message), order.sent);
                self.shared.progress.add(0, 1);
            }
        }
    }
}

/// Requests that are in flight at the end are neither right nor wrong.
impl Drop for Session {
    fn drop(&mut self) {
        let unfinished = self.slots.len() - self.free.len() + self.backlog.len();
        self.tally(|tally| tally.unfinished += unfinished as u64);
    }
}
