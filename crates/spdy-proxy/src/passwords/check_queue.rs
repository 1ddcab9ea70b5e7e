//! The queue of password checks: few at a time, and clients take turns.
//!
//! ```text
//!  attempt ── the client has two already ──▶ TooMany
//!     │    ── too many wait ───────────────▶ Busy
//!     └──▶ a place in the queue of its client ──▶ a turn: the next client's first attempt, then the one after it
//! ```
//!
//! One client that guesses can delay another by the check that is running and by one more, however many it sends.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Maximum number of attempts of one client that wait or are being checked.
pub(crate) const MAX_ATTEMPTS_AT_A_TIME: usize = 2;
/// Maximum number of waiting attempts of all clients.
const MAX_WAITING: usize = 64;
/// How long an attempt waits for its turn.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);

/// An IPv4 address or a /56 of IPv6; `None` if it is unknown.
type Client = Option<IpAddr>;

/// Why an attempt does not wait.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueueError {
    /// The client has too many attempts.
    TooMany,
    /// All clients together have too many.
    Busy,
}

/// The queue.
#[derive(Debug)]
pub(crate) struct CheckQueue(Mutex<QueueState>);

#[derive(Debug)]
struct QueueState {
    /// Checks that may start. Nothing waits unless it is 0.
    free: usize,
    /// The client of each check that is running.
    running: Vec<Client>,
    /// The clients with waiting attempts, the next first.
    waiting: VecDeque<(Client, VecDeque<oneshot::Sender<Turn>>)>,
}

/// The permission to check one password, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    queue: Arc<CheckQueue>,
    client: Client,
}

impl CheckQueue {
    /// A queue for `at_a_time` checks at a time.
    pub(crate) fn new(at_a_time: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(QueueState {
            free: at_a_time,
            running: Vec::new(),
            waiting: VecDeque::new(),
        })))
    }

    /// Adds an attempt of `client`. It leaves the queue if the receiver is dropped.
    ///
    /// # Errors
    ///
    /// A limit is reached.
    pub(crate) fn join(
        self: &Arc<Self>,
        client: Client,
    ) -> Result<oneshot::Receiver<Turn>, QueueError> {
        let mut state = self.0.lock();
        state.remove_abandoned();
        if state.attempts(client) >= MAX_ATTEMPTS_AT_A_TIME {
            return Err(QueueError::TooMany);
        }
        let (sender, receiver) = oneshot::channel();
        if let Some(free) = state.free.checked_sub(1) {
            state.free = free;
            state.running.push(client);
            drop(state);
            let _is_received = sender.send(Turn {
                queue: self.clone(),
                client,
            });
            return Ok(receiver);
        }
        let waiting = state.waiting.iter().map(|(_, attempts)| attempts.len());
        if waiting.sum::<usize>() >= MAX_WAITING {
            return Err(QueueError::Busy);
        }
        let mut waiting = state.waiting.iter_mut();
        match waiting.find(|(waiting, _)| *waiting == client) {
            Some((_, attempts)) => attempts.push_back(sender),
            None => state.waiting.push_back((client, [sender].into())),
        }
        Ok(receiver)
    }
}

impl QueueState {
    /// The attempts of `client` that wait or are being checked.
    fn attempts(&self, client: Client) -> usize {
        let running = self.running.iter().filter(|running| **running == client);
        let waiting = self
            .waiting
            .iter()
            .filter(|(waiting, _)| *waiting == client);
        let waiting: usize = waiting.map(|(_, attempts)| attempts.len()).sum();
        running.count() + waiting
    }

    fn remove_abandoned(&mut self) {
        for (_, attempts) in &mut self.waiting {
            attempts.retain(|attempt| !attempt.is_closed());
        }
        self.waiting.retain(|(_, attempts)| !attempts.is_empty());
    }

    /// Ends a check of `client`, and starts the next one if any waits.
    fn next_after(&mut self, client: Client) -> Option<(Client, oneshot::Sender<Turn>)> {
        if let Some(index) = self.running.iter().position(|running| *running == client) {
            self.running.swap_remove(index);
        }
        self.remove_abandoned();
        let next = self.waiting.pop_front().and_then(|(client, mut attempts)| {
            let attempt = attempts.pop_front()?;
            if !attempts.is_empty() {
                self.waiting.push_back((client, attempts));
            }
            Some((client, attempt))
        });
        match &next {
            Some((client, _)) => self.running.push(*client),
            None => self.free += 1,
        }
        next
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = self.queue.0.lock().next_after(self.client);
        if let Some((client, attempt)) = next {
            // If it was abandoned just now, the turn is dropped here, and the next attempt gets it.
            let _is_received = attempt.send(Turn {
                queue: self.queue.clone(),
                client,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(number: u8) -> Client {
        Some(IpAddr::from([192, 0, 2, number]))
    }

    fn turn(receiver: &mut oneshot::Receiver<Turn>) -> Option<Turn> {
        receiver.try_recv().ok()
    }

    #[test]
    fn clients_take_turns() {
        let queue = CheckQueue::new(1);
        let join = |number| queue.join(client(number)).expect("a place");
        let running = turn(&mut join(1)).expect("it is free");
        let (mut first, mut second, mut other) = (join(2), join(2), join(3));
        for receiver in [&mut first, &mut second, &mut other] {
            assert!(turn(receiver).is_none());
        }
        drop(running);
        let running = turn(&mut first).expect("the first");
        assert!(turn(&mut second).is_none() && turn(&mut other).is_none());
        drop(running);
        let running = turn(&mut other).expect("the other client's, though it came later");
        assert!(turn(&mut second).is_none());
        drop(running);
        drop(turn(&mut second).expect("the last"));
        assert!(turn(&mut join(1)).is_some(), "it is free again");
    }

    #[test]
    fn attempts_of_one_client_and_of_all_are_limited() {
        let queue = CheckQueue::new(1);
        let running = turn(&mut queue.join(client(0)).expect("a place")).expect("it is free");
        let own = queue.join(client(0)).expect("a place");
        assert_eq!(queue.join(client(0)).unwrap_err(), QueueError::TooMany);
        let waiting = (1..64).map(|number| queue.join(client(number)).expect("a place"));
        let waiting: Vec<_> = waiting.collect();
        assert_eq!(queue.join(client(64)).unwrap_err(), QueueError::Busy);
        // A client that leaves makes room, and its turn passes to the next one.
        drop(own);
        let mut last = queue.join(client(64)).expect("a place");
        drop(waiting);
        drop(running);
        assert!(turn(&mut last).is_some());
    }

    #[test]
    fn turn_of_an_attempt_that_is_abandoned_later_is_passed_on() {
        let queue = CheckQueue::new(1);
        let running = turn(&mut queue.join(client(0)).expect("a place"));
        let (first, mut second) = (
            queue.join(client(1)),
            queue.join(client(2)).expect("a place"),
        );
        drop(running);
        assert!(turn(&mut second).is_none());
        drop(first);
        assert!(turn(&mut second).is_some());
    }
}
