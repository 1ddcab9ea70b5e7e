//! Room for what is sent and not acknowledged: bounded for a connection, and given to the most urgent first.
//!
//! ```text
//!   piece of a body --poll_take, the most urgent first--> QUIC --acknowledged: dropped--> room again
//! ```
//!
//! quinn has a bound of its own, but gives what becomes free to whoever asks first: a response that fills it would
//! keep a more urgent one out to its own end. So that bound is out of the way, and each piece that quinn holds tells
//! us, by being dropped, that it is held no more. A stream whose own window is closed waits for that, not for room,
//! and so keeps out nobody.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

/// The most that becomes free at once, bytes: a peer that takes less than `min_rate` is told from one that takes more
/// by what becomes free in `write_timeout`, so it is a fraction of that (14,400 bytes by default).
const GRAIN_BYTES: usize = 4 * 1024;

/// The room of a connection. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct Room(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    free_bytes: usize,
    next: u64,
    /// By urgency, 0 the most urgent, and in the order in which they began.
    waiting: BTreeMap<(u8, u64), Waker>,
    /// All that ever became free.
    released_bytes: u64,
}

impl Room {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free_bytes: bytes,
            next: 0,
            waiting: BTreeMap::new(),
            released_bytes: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place in the queue for it.
    pub(super) fn queue(&self) -> Queue {
        let mut state = self.lock();
        state.next += 1;
        Queue {
            number: state.next,
            room: self.clone(),
            waits_at: None,
        }
    }

    /// Bytes that the peer has acknowledged so far: whether it takes anything.
    pub(super) fn released_bytes(&self) -> u64 {
        self.lock().released_bytes
    }
}

impl State {
    /// Wakes who is next, if there is anything to have.
    fn wake_first(&mut self) {
        if self.free_bytes > 0
            && let Some(waker) = self.waiting.values().next()
        {
            waker.wake_by_ref();
        }
    }
}

/// Who sends a body. Dropped, it keeps out nobody.
#[derive(Debug)]
pub(super) struct Queue {
    room: Room,
    number: u64,
    waits_at: Option<(u8, u64)>,
}

impl Queue {
    /// Ready with at most `most` bytes of `data`, in grains, once there is room and nobody more urgent, or as urgent and older,
    /// waits for it. The room is taken until what it gives is dropped.
    pub(super) fn poll_take(
        &mut self,
        cx: &mut Context<'_>,
        urgency: u8,
        data: &mut Bytes,
        most: usize,
    ) -> Poll<Vec<Bytes>> {
        let mut state = self.room.lock();
        if let Some(place) = self.waits_at.take() {
            state.waiting.remove(&place);
        }
        let place = (urgency, self.number);
        let is_first = state
            .waiting
            .keys()
            .next()
            .is_none_or(|first| place < *first);
        let len = state.free_bytes.min(most).min(data.len());
        if !is_first || len == 0 {
            state.waiting.insert(place, cx.waker().clone());
            self.waits_at = Some(place);
            state.wake_first(); // it may have been woken in another's stead
            return Poll::Pending;
        }
        state.free_bytes -= len;
        state.wake_first();
        drop(state);
        let mut taken = data.split_to(len);
        let mut grains = Vec::with_capacity(len.div_ceil(GRAIN_BYTES));
        while !taken.is_empty() {
            let bytes = taken.split_to(taken.len().min(GRAIN_BYTES));
            let room = self.room.clone();
            grains.push(Bytes::from_owner(Held { bytes, room }));
        }
        Poll::Ready(grains)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        if let Some(place) = self.waits_at {
            let mut state = self.room.lock();
            state.waiting.remove(&place);
            state.wake_first();
        }
    }
}

/// Bytes that take up room.
struct Held {
    bytes: Bytes,
    room: Room,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut state = self.room.lock();
        state.free_bytes += self.bytes.len();
        state.released_bytes += self.bytes.len() as u64;
        state.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(queue: &mut Queue, urgency: u8, data: &mut Bytes) -> Option<Bytes> {
        let mut cx = Context::from_waker(Waker::noop());
        match queue.poll_take(&mut cx, urgency, data, 4) {
            Poll::Ready(mut grains) => grains.pop(),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_piece_becomes_free_grain_by_grain() {
        let room = Room::new(100_000);
        let mut cx = Context::from_waker(Waker::noop());
        let mut data = Bytes::from(vec![7; 10_000]);
        let taken = room.queue().poll_take(&mut cx, 3, &mut data, 9_000);
        let Poll::Ready(mut grains) = taken else {
            panic!("there is room");
        };
        assert_eq!(data.len(), 1_000);
        assert_eq!(grains.iter().map(Bytes::len).sum::<usize>(), 9_000);
        drop(grains.pop());
        assert_eq!(room.released_bytes(), 9_000 % 4_096);
        drop(grains.pop());
        assert_eq!(room.released_bytes(), 9_000 - 4_096);
    }

    #[test]
    fn what_becomes_free_goes_to_the_most_urgent_and_of_equals_to_the_older() {
        let room = Room::new(8);
        let (mut low, mut equal, mut urgent) = (room.queue(), room.queue(), room.queue());
        let mut data = [(); 3].map(|()| Bytes::from(vec![7; 100]));
        let held = [(); 2].map(|()| take(&mut low, 5, &mut data[0]).expect("there is room"));
        assert_eq!(held[0].len(), 4);
        assert!(take(&mut low, 5, &mut data[0]).is_none(), "all is taken");
        assert!(take(&mut equal, 5, &mut data[1]).is_none());
        assert!(take(&mut urgent, 1, &mut data[2]).is_none());
        drop(held);
        assert_eq!(room.released_bytes(), 8);
        assert!(take(&mut equal, 5, &mut data[1]).is_none());
        assert!(
            take(&mut low, 5, &mut data[0]).is_none(),
            "one waits who is more urgent"
        );
        let first = take(&mut urgent, 1, &mut data[2]).expect("it is the most urgent");
        assert!(
            take(&mut equal, 5, &mut data[1]).is_none(),
            "an older one waits"
        );
        let second = take(&mut low, 5, &mut data[0]).expect("it is the oldest");
        assert!(take(&mut equal, 5, &mut data[1]).is_none());
        drop((first, second, low));
        assert!(
            take(&mut equal, 5, &mut data[1]).is_some(),
            "nobody else waits"
        );
    }
}
