//! Budget for bytes that are sent and not acknowledged: limited per connection, and given to the most urgent stream first.
//!
//! ```text
//!   piece of a body --poll_take, the most urgent first--> QUIC --acknowledged: dropped--> room again
//! ```
//!
//! quinn has its own limit, but gives freed room to the first task that waits for it: a response that fills it would block a more
//! urgent one until its end. So quinn's limit is disabled, and each piece that quinn holds returns its room here when it is
//! dropped. A stream whose own window is closed returns the bytes that QUIC does not accept. It waits for its window, not for room,
//! and so blocks no other stream.
//!
//! While the connection's window is closed, all streams wait for it. When it opens, QUIC wakes them all, in its own order.
//! From then on these streams are marked (`wake_detector.rs`), and a stream gets no room before all marked streams with a higher
//! precedence have tried to send.
//!
//! Incremental streams share by bytes, not by turns: the window opens by varying amounts, so with turns the same stream could
//! always get more. The next stream is the one that sent the fewest bytes since it began, as in start-time fair queuing (Goyal, Vin
//! and Cheng 1996).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use spdy_net_core::priority::HttpPriority;

/// Maximum room that is released at once, bytes. The bytes that are released within `write_timeout` decide if a peer is slower than
/// `min_rate`, so this must be a fraction of them (14,400 bytes by default).
const BUDGET_CHUNK_BYTES: usize = 4 * 1024;

/// Maximum lag of an incremental stream that is compensated, bytes: several turns, but not everything that others sent while it had
/// no data or no window.
const MAX_LAG_BYTES: u64 = 256 * 1024;

/// The budget of a connection. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct SendBudget(Arc<Mutex<State>>);

/// Order of claims: by urgency, 0 the most urgent; incremental streams after others; among these by their bytes so far; and equal
/// ones in the order in which they began (RFC 9218 §10).
type ClaimKey = (u8, bool, u64, u64);

#[derive(Debug)]
struct State {
    free_bytes: usize,
    next: u64,
    /// For each urgency, the maximum of bytes that an incremental stream had when it got more: a new stream starts there.
    shared_bytes: BTreeMap<u8, u64>,
    waiting: BTreeMap<ClaimKey, Waker>,
    /// The streams of which QUIC accepted no more bytes, by the `id` of their claim.
    blocked: BTreeMap<u64, BlockedStream>,
    /// Sum of all released bytes.
    released_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct BlockedStream {
    place: ClaimKey,
    /// True if QUIC woke it, and it has not tried to send since.
    is_woken: bool,
}

impl SendBudget {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(State {
            free_bytes: bytes,
            next: 0,
            shared_bytes: BTreeMap::new(),
            waiting: BTreeMap::new(),
            blocked: BTreeMap::new(),
            released_bytes: 0,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }

    /// Adds a claim to the queue.
    pub(crate) fn claim(&self) -> BudgetClaim {
        let mut state = self.lock();
        state.next += 1;
        BudgetClaim {
            id: state.next,
            shared_bytes: None,
            room: self.clone(),
            waiting_at: None,
        }
    }

    /// Bytes that the peer has acknowledged so far: shows if it makes progress.
    pub(crate) fn released_bytes(&self) -> u64 {
        self.lock().released_bytes
    }
}

impl State {
    /// Wakes the first waiting claim if there is free room and QUIC woke no claim that goes before it.
    fn wake_first(&mut self) {
        if self.free_bytes > 0
            && let Some((place, waker)) = self.waiting.first_key_value()
            && self.first_woken().is_none_or(|called| *place < called)
        {
            waker.wake_by_ref();
        }
    }

    /// Records that a claim at `urgency` has sent `had` bytes: a new claim starts there.
    fn advance(&mut self, urgency: u8, had: u64) {
        let others = self.shared_bytes.entry(urgency).or_default();
        *others = (*others).max(had);
    }

    /// The first of the claims that QUIC woke.
    fn first_woken(&self) -> Option<ClaimKey> {
        let called = self.blocked.values().filter(|blocked| blocked.is_woken);
        called.map(|blocked| blocked.place).min()
    }

    /// True if a claim at `place` precedes all waiting claims.
    fn is_first(&self, place: ClaimKey) -> bool {
        let waiting = self.waiting.first_key_value().map(|(place, _)| *place);
        let others = waiting.into_iter().chain(self.first_woken());
        others.min().is_none_or(|other| place < other)
    }
}

/// Records that QUIC woke the writer of a body.
#[derive(Debug)]
pub(crate) struct QuicWakeNotifier {
    room: SendBudget,
    id: u64,
}

impl QuicWakeNotifier {
    /// Marks the writer as woken: until it has tried, no claim behind it goes first.
    pub(crate) fn notify(&self) {
        if let Some(blocked) = self.room.lock().blocked.get_mut(&self.id) {
            blocked.is_woken = true;
        }
    }
}

/// The claim of a body that is being sent. Dropping it unblocks other claims.
#[derive(Debug)]
pub(crate) struct BudgetClaim {
    room: SendBudget,
    /// Identifies the claim, independent of its place. A later claim has a higher ID.
    id: u64,
    /// The urgency at which it shares, and its bytes there, counted as if it had been there from the start.
    shared_bytes: Option<(u8, u64)>,
    waiting_at: Option<ClaimKey>,
}

impl BudgetClaim {
    /// The notifier to call when QUIC wakes the writer.
    pub(crate) fn notifier(&self) -> QuicWakeNotifier {
        QuicWakeNotifier {
            room: self.room.clone(),
            id: self.id,
        }
    }

    fn place(&self, state: &State, precedence: HttpPriority) -> ClaimKey {
        let (urgency, is_shared) = (precedence.urgency, precedence.incremental);
        let others = state.shared_bytes.get(&urgency).copied().unwrap_or(0);
        let had = match self.shared_bytes {
            _ if !is_shared => 0,
            Some((at, mine)) if at == urgency => mine.max(others.saturating_sub(MAX_LAG_BYTES)),
            _ => others,
        };
        (urgency, is_shared, had, self.id)
    }

    /// Records that QUIC accepted `taken` bytes of the last piece.
    pub(crate) fn record_sent(&mut self, taken: usize) {
        let Some((urgency, had)) = self.shared_bytes.as_mut().filter(|_| taken > 0) else {
            return;
        };
        self.room.lock().advance(*urgency, *had);
        *had += taken as u64;
    }

    /// Records that QUIC accepts no more.
    pub(crate) fn blocked(&self, precedence: HttpPriority) {
        let mut state = self.room.lock();
        let place = self.place(&state, precedence);
        let is_called = false;
        let blocked = BlockedStream {
            place,
            is_woken: is_called,
        };
        state.blocked.insert(self.id, blocked);
    }

    /// Ready with at most `most` bytes from the start of `data`, once there is room and no preceding claim waits. The room is used
    /// until the piece is dropped or returned.
    pub(crate) fn poll_reserve(
        &mut self,
        cx: &mut Context<'_>,
        precedence: HttpPriority,
        data: &Bytes,
        most: usize,
    ) -> Poll<BudgetedPiece> {
        let mut state = self.room.lock();
        if let Some(place) = self.waiting_at.take() {
            state.waiting.remove(&place);
        }
        state.blocked.remove(&self.id);
        let place = self.place(&state, precedence);
        let (urgency, is_shared, had, _) = place;
        self.shared_bytes = is_shared.then_some((urgency, had));
        let len = state.free_bytes.min(most).min(data.len());
        if !state.is_first(place) || len == 0 {
            state.waiting.insert(place, cx.waker().clone());
            self.waiting_at = Some(place);
            state.wake_first(); // it may have been woken instead of another claim
            return Poll::Pending;
        }
        state.free_bytes -= len;
        state.wake_first();
        drop(state);
        let mut taken = data.slice(..len);
        let mut piece = BudgetedPiece {
            room: self.room.clone(),
            chunks: Vec::with_capacity(len.div_ceil(BUDGET_CHUNK_BYTES)),
            shares: Vec::with_capacity(len.div_ceil(BUDGET_CHUNK_BYTES)),
        };
        while !taken.is_empty() {
            let bytes = taken.split_to(taken.len().min(BUDGET_CHUNK_BYTES));
            let share = Arc::new(AtomicUsize::new(bytes.len()));
            piece.shares.push(share.clone());
            let room = self.room.clone();
            piece
                .chunks
                .push(Bytes::from_owner(BudgetedBytes { bytes, share, room }));
        }
        Poll::Ready(piece)
    }
}

impl Drop for BudgetClaim {
    fn drop(&mut self) {
        let mut state = self.room.lock();
        if let Some(place) = self.waiting_at {
            state.waiting.remove(&place);
        }
        state.blocked.remove(&self.id);
        // Otherwise short claims in sequence would all start before a long one.
        if let Some((urgency, had)) = self.shared_bytes {
            state.advance(urgency, had);
        }
        state.wake_first();
    }
}

/// A piece of a body with room in the budget.
#[derive(Debug)]
pub(crate) struct BudgetedPiece {
    room: SendBudget,
    /// Its bytes.
    pub(crate) chunks: Vec<Bytes>,
    /// The room that each chunk uses, bytes.
    shares: Vec<Arc<AtomicUsize>>,
}

impl BudgetedPiece {
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(Bytes::len).sum()
    }

    /// Returns the room of the bytes that QUIC did not accept, and the number of these bytes.
    pub(crate) fn give_back(self) -> usize {
        let left = self.len();
        for (grain, share) in self.chunks.iter().zip(&self.shares) {
            share.fetch_sub(grain.len(), Ordering::Relaxed);
        }
        drop(self.chunks);
        let mut state = self.room.lock();
        state.free_bytes += left;
        state.wake_first();
        left
    }
}

/// Bytes that use room.
struct BudgetedBytes {
    bytes: Bytes,
    share: Arc<AtomicUsize>,
    room: SendBudget,
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for BudgetedBytes {
    fn drop(&mut self) {
        let mut state = self.room.lock();
        let share = self.share.load(Ordering::Relaxed);
        state.free_bytes += share;
        state.released_bytes += share as u64;
        state.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(urgency: u8, incremental: bool) -> HttpPriority {
        HttpPriority {
            urgency,
            incremental,
        }
    }

    fn piece(
        queue: &mut BudgetClaim,
        precedence: HttpPriority,
        data: &Bytes,
        most: usize,
    ) -> Option<BudgetedPiece> {
        let mut cx = Context::from_waker(Waker::noop());
        match queue.poll_reserve(&mut cx, precedence, data, most) {
            Poll::Ready(piece) => {
                queue.record_sent(piece.len());
                Some(piece)
            }
            Poll::Pending => None,
        }
    }

    fn take(queue: &mut BudgetClaim, urgency: u8, data: &mut Bytes) -> Option<Bytes> {
        piece(queue, of(urgency, false), data, 4)?.chunks.pop()
    }

    #[test]
    fn incremental_streams_alternate_after_non_incremental_ones() {
        let room = SendBudget::new(4);
        let (mut one, mut two, mut whole) = (room.claim(), room.claim(), room.claim());
        let data = Bytes::from(vec![7; 100]);
        let mut held = piece(&mut one, of(3, true), &data, 4);
        for turn in 0..3 {
            assert!(piece(&mut two, of(3, true), &data, 4).is_none(), "{turn}");
            assert!(piece(&mut one, of(3, true), &data, 4).is_none(), "{turn}");
            drop(held);
            assert!(piece(&mut one, of(3, true), &data, 4).is_none(), "{turn}");
            held = piece(&mut two, of(3, true), &data, 4);
            assert!(held.is_some(), "{turn}: it is the other stream's turn");
            std::mem::swap(&mut one, &mut two);
        }
        assert!(piece(&mut one, of(3, true), &data, 4).is_none());
        assert!(piece(&mut whole, of(3, false), &data, 4).is_none());
        drop(held);
        assert!(piece(&mut one, of(3, true), &data, 4).is_none());
        assert!(piece(&mut whole, of(3, false), &data, 4).is_some());
    }

    /// True if `queue` may send; QUIC then accepts `taken` bytes, and no more.
    fn tries(queue: &mut BudgetClaim, taken: usize) -> bool {
        let (mut cx, data) = (
            Context::from_waker(Waker::noop()),
            Bytes::from_static(b"data"),
        );
        let tried = queue.poll_reserve(&mut cx, of(3, true), &data, 4);
        let is_first = tried.map(BudgetedPiece::give_back).is_ready();
        if is_first {
            queue.record_sent(taken);
            queue.blocked(of(3, true));
        }
        is_first
    }

    #[test]
    fn woken_streams_keep_their_order_least_served_first() {
        let room = SendBudget::new(100);
        let [mut one, mut two, mut three] = [(); 3].map(|()| room.claim());
        let callers = [&one, &two, &three].map(BudgetClaim::notifier);
        assert!(tries(&mut one, 4) && tries(&mut two, 0) && tries(&mut three, 4));
        callers.iter().for_each(QuicWakeNotifier::notify);
        assert!(!tries(&mut three, 4) && !tries(&mut one, 4));
        assert!(tries(&mut two, 4), "it had no data the last time");
        assert!(!tries(&mut three, 4), "another stream had its turn before");
        assert!(tries(&mut one, 0));
        assert!(tries(&mut three, 4));
        // A claim that was not woken blocks no other, nor does a dropped one.
        assert!(tries(&mut two, 0));
        callers[0].notify();
        assert!(!tries(&mut two, 0));
        drop(one);
        callers[0].notify();
        assert!(tries(&mut two, 0));
    }

    /// Regression: with turns the second stream sent twice as much, and a late claim waited until it had sent as much as all
    /// earlier ones.
    #[test]
    fn incremental_streams_get_equal_bytes_also_latecomers() {
        let (room, data) = (SendBudget::new(0), Bytes::from_static(b"data"));
        let mut queues = [(); 3].map(|()| room.claim());
        let (mut held, mut had) = (Vec::new(), [0; 3]);
        let mut pass = |among: usize, bytes: usize| {
            for free_bytes in [0, bytes] {
                room.lock().free_bytes = free_bytes;
                for (queue, had) in queues[..among].iter_mut().zip(&mut had) {
                    let taken = piece(queue, of(3, true), &data, 4);
                    *had += taken.as_ref().map_or(0, BudgetedPiece::len);
                    held.extend(taken);
                }
            }
            had
        };
        let turns = (0..120).map(|turn| pass(2, 1 + turn % 2));
        let [one, two, _] = turns.last().expect("some");
        assert!(one.abs_diff(two) <= 2, "{one} and {two}");
        let turns = (0..120).map(|turn| pass(3, 1 + turn % 3));
        let [one_more, two_more, three] = turns.last().expect("some");
        for had in [one_more - one, two_more - two, three] {
            assert!(had.abs_diff(80) <= 4, "{had}");
        }
    }

    #[test]
    fn a_long_stream_keeps_its_share_beside_many_short_ones() {
        let (room, data) = (SendBudget::new(0), Bytes::from_static(b"data"));
        let (mut lasting, mut had) = (room.claim(), [0; 2]);
        let (mut held, mut next) = (Vec::new(), room.claim());
        for _ in 0..100 {
            for free_bytes in [0, 4] {
                room.lock().free_bytes = free_bytes;
                for (queue, had) in [&mut lasting, &mut next].into_iter().zip(&mut had) {
                    let taken = piece(queue, of(3, true), &data, 4);
                    *had += taken.as_ref().map_or(0, BudgetedPiece::len);
                    held.extend(taken);
                }
            }
            if next.shared_bytes.is_some_and(|(_, had)| had > 0) && next.waiting_at.is_none() {
                next = room.claim();
            }
        }
        assert!(had[0].abs_diff(had[1]) <= 8, "{had:?}");
    }

    #[test]
    fn a_stream_without_window_catches_up_within_a_limit() {
        let room = SendBudget::new(100);
        let [mut one, mut two] = [(); 2].map(|()| room.claim());
        let callers = [&one, &two].map(BudgetClaim::notifier);
        assert!(tries(&mut one, 1));
        assert!((0..100).all(|_| tries(&mut two, 64 * 1024)));
        let mut made_good = 0;
        callers.iter().for_each(QuicWakeNotifier::notify);
        while tries(&mut one, 1024) {
            made_good += 1024;
            callers[0].notify();
        }
        assert!(
            (MAX_LAG_BYTES..=2 * MAX_LAG_BYTES).contains(&made_good),
            "{made_good}"
        );
    }

    #[test]
    fn returned_budget_is_free_and_is_no_progress() {
        let room = SendBudget::new(10_000);
        let data = Bytes::from(vec![7; 10_000]);
        let mut all = piece(&mut room.claim(), of(3, false), &data, 10_000).expect("there is room");
        let taken = [all.chunks[0].split_to(4_096), all.chunks[1].split_to(1)];
        assert_eq!(all.give_back(), 10_000 - 4_097);
        assert_eq!(room.released_bytes(), 0);
        let again = piece(&mut room.claim(), of(3, false), &data, 10_000).expect("there is room");
        assert_eq!(again.len(), 10_000 - 4_097);
        drop(taken);
        assert_eq!(room.released_bytes(), 4_097);
    }

    #[test]
    fn a_piece_becomes_free_grain_by_grain() {
        let room = SendBudget::new(100_000);
        let data = Bytes::from(vec![7; 10_000]);
        let mut all = piece(&mut room.claim(), of(3, false), &data, 9_000).expect("there is room");
        assert_eq!(all.len(), 9_000);
        drop(all.chunks.pop());
        assert_eq!(room.released_bytes(), 9_000 % 4_096);
        drop(all.chunks.pop());
        assert_eq!(room.released_bytes(), 9_000 - 4_096);
    }

    #[test]
    fn freed_budget_goes_to_the_most_urgent_then_the_oldest() {
        let room = SendBudget::new(8);
        let (mut low, mut equal, mut urgent) = (room.claim(), room.claim(), room.claim());
        let mut data = [(); 3].map(|()| Bytes::from(vec![7; 100]));
        let held = [(); 2].map(|()| take(&mut low, 5, &mut data[0]).expect("there is room"));
        assert_eq!(held[0].len(), 4);
        assert!(
            take(&mut low, 5, &mut data[0]).is_none(),
            "all room is in use"
        );
        assert!(take(&mut equal, 5, &mut data[1]).is_none());
        assert!(take(&mut urgent, 1, &mut data[2]).is_none());
        drop(held);
        assert_eq!(room.released_bytes(), 8);
        assert!(take(&mut equal, 5, &mut data[1]).is_none());
        assert!(
            take(&mut low, 5, &mut data[0]).is_none(),
            "a more urgent stream waits"
        );
        let first = take(&mut urgent, 1, &mut data[2]).expect("it is the most urgent stream");
        assert!(
            take(&mut equal, 5, &mut data[1]).is_none(),
            "an older stream waits"
        );
        let second = take(&mut low, 5, &mut data[0]).expect("it is the oldest stream");
        assert!(take(&mut equal, 5, &mut data[1]).is_none());
        drop((first, second, low));
        assert!(
            take(&mut equal, 5, &mut data[1]).is_some(),
            "no other stream waits"
        );
    }
}
