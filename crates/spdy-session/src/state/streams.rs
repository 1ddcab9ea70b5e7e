//! All streams of a session: found by ID, counted by side, and remembered for some time after they are removed.
//!
//! IDs of one side only increase, so each side is a sorted list: new streams are appended, and a lookup is a binary search over
//! 8-byte entries. The streams themselves are in slots that are reused. There is no hash map, so every iteration has a defined
//! order.

use std::collections::VecDeque;

use spdy_frame::stream_id::StreamId;

use crate::state::stream::{Item, State, Stream};

/// Number of removed streams that are remembered, so that late frames for them are ignored (choice).
const MAX_REMEMBERED_IDS: usize = 64;

/// Limit of spare queues: about the usual limit of concurrent streams.
const MAX_SPARE_QUEUES: usize = 128;

/// Slots that a session without streams keeps. A session with more slots had a burst, and may now be idle for a long time.
const MAX_IDLE_SLOTS: usize = 16;

/// Capacity of a spare queue, items: slightly more than a response from memory needs.
const SPARE_ITEMS: usize = 8;

#[derive(Clone, Copy, Debug)]
struct Entry {
    id: u32,
    slot: u32,
}

/// The streams that one side opened.
#[derive(Debug, Default)]
struct Side {
    /// Ascending by id.
    entries: Vec<Entry>,
    /// Streams whose halves are not both closed.
    active: usize,
}

impl Side {
    fn find(&self, id: StreamId) -> Option<usize> {
        let id = id.value();
        // most frames are for one of the newest streams
        match self.entries.last() {
            Some(last) if last.id == id => Some(self.entries.len() - 1),
            Some(last) if last.id > id => {
                // IDs increase by at least two, so no entry is at a higher index than this. If all streams were opened and removed
                // in order, this is the exact index.
                let first = self.entries[0].id;
                let at_most = id.checked_sub(first)? as usize / 2;
                let before = &self.entries[..self.entries.len().min(at_most + 1)];
                match before.last() {
                    Some(entry) if entry.id == id => Some(before.len() - 1),
                    _ => before.binary_search_by_key(&id, |entry| entry.id).ok(),
                }
            }
            _ => None,
        }
    }
}

/// The streams of a session.
#[derive(Debug)]
pub(crate) struct Streams {
    /// Parity of the IDs that we open: 1 for a client.
    ours_parity: u32,
    slots: Vec<Option<Stream>>,
    free: Vec<u32>,
    ours: Side,
    theirs: Side,
    closed_ids: VecDeque<u32>,
    /// Empty queues of removed streams, for reuse.
    spare: Vec<VecDeque<Item>>,
}

impl Streams {
    pub(crate) fn new(client: bool) -> Self {
        Self {
            ours_parity: u32::from(client),
            slots: Vec::new(),
            free: Vec::new(),
            ours: Side::default(),
            theirs: Side::default(),
            closed_ids: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// True if `id` has the parity of streams that we open.
    pub(crate) fn is_ours(&self, id: StreamId) -> bool {
        id.value() % 2 == self.ours_parity
    }

    fn side(&self, id: StreamId) -> &Side {
        if self.is_ours(id) {
            &self.ours
        } else {
            &self.theirs
        }
    }

    fn side_mut(&mut self, id: StreamId) -> &mut Side {
        if self.is_ours(id) {
            &mut self.ours
        } else {
            &mut self.theirs
        }
    }

    fn slot(&self, id: StreamId) -> Option<usize> {
        let side = self.side(id);
        side.find(id).map(|at| side.entries[at].slot as usize)
    }

    /// The stream `id`, also if it is closed with unread DATA.
    pub(crate) fn get(&self, id: StreamId) -> Option<&Stream> {
        self.slot(id).and_then(|slot| self.slots[slot].as_ref())
    }

    /// Like [`get`](Self::get), mutable. A caller that changes its state to `Closed` calls [`stop_counting`](Self::stop_counting).
    pub(crate) fn get_mut(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.slot(id).and_then(|slot| self.slots[slot].as_mut())
    }

    /// True if stream `id` exists and is not closed.
    pub(crate) fn is_open(&self, id: StreamId) -> bool {
        self.get(id)
            .is_some_and(|stream| stream.state != State::Closed)
    }

    /// Inserts a new stream, whose ID must be the highest of its side.
    pub(crate) fn insert(&mut self, stream: Stream) {
        let id = stream.id;
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = Some(stream);
                slot
            }
            None => {
                if self.slots.is_empty() {
                    self.slots.reserve_exact(1); // many sessions never have two streams at once
                }
                self.slots.push(Some(stream));
                (self.slots.len() - 1) as u32
            }
        };
        let side = self.side_mut(id);
        assert!(
            side.entries.last().is_none_or(|last| last.id < id.value()),
            "stream {id} after {:?}",
            side.entries.last()
        );
        side.entries.push(Entry {
            id: id.value(),
            slot,
        });
        side.active += 1;
    }

    /// Stops counting a stream whose halves are both closed; it stays until its DATA is consumed.
    pub(crate) fn stop_counting(&mut self, id: StreamId) {
        if let Some(stream) = self.get_mut(id) {
            stream.counted = false;
        }
        self.side_mut(id).active -= 1;
        self.remember(id);
    }

    /// Removes a stream.
    pub(crate) fn remove(&mut self, id: StreamId) -> Option<Stream> {
        self.free_slot(id)?.take()
    }

    /// Frees the slot of a stream, and returns it. The caller empties it.
    fn free_slot(&mut self, id: StreamId) -> Option<&mut Option<Stream>> {
        let side = self.side_mut(id);
        let at = side.find(id)?;
        let slot = side.entries.remove(at).slot;
        self.free.push(slot);
        let is_counted = matches!(&self.slots[slot as usize], Some(stream) if stream.counted);
        if is_counted {
            self.side_mut(id).active -= 1;
        }
        Some(&mut self.slots[slot as usize])
    }

    /// True if there are no streams, but the memory for many streams is still allocated.
    pub(crate) fn has_burst_memory(&self) -> bool {
        self.free.len() == self.slots.len() && self.slots.capacity() > MAX_IDLE_SLOTS
    }

    /// Returns the memory of slots and queues, if there are no streams.
    pub(crate) fn release_burst_memory(&mut self) {
        if !self.has_burst_memory() {
            return;
        }
        self.slots = Vec::new();
        self.free = Vec::new();
        self.ours.entries = Vec::new();
        self.theirs.entries = Vec::new();
        self.spare = Vec::new();
    }

    /// Removes a stream that has ended, and keeps its queue for the next one. Returns the growth of its receive window, bytes.
    pub(crate) fn retire(&mut self, id: StreamId) -> i64 {
        let Some(slot) = self.free_slot(id) else {
            return 0;
        };
        let Some(stream) = slot else {
            return 0;
        };
        // Taken out of the slot, because moving the stream would cost more than the rest.
        let mut items = std::mem::take(&mut stream.items);
        let grown = stream.receive_window.grown();
        *slot = None;
        if self.spare.len() < MAX_SPARE_QUEUES && items.capacity() <= SPARE_ITEMS {
            items.clear();
            self.spare.push(items);
        }
        grown
    }

    /// The growth of the receive windows of all streams, bytes.
    pub(crate) fn window_growth(&self) -> i64 {
        let streams = self.slots.iter().flatten();
        streams.map(|stream| stream.receive_window.grown()).sum()
    }

    /// An empty queue for a new stream.
    pub(crate) fn queue(&mut self) -> VecDeque<Item> {
        self.spare.pop().unwrap_or_default()
    }

    /// Remembers `id`, so that late frames for it are ignored.
    pub(crate) fn remember(&mut self, id: StreamId) {
        if self.closed_ids.len() == MAX_REMEMBERED_IDS {
            self.closed_ids.pop_front();
        }
        self.closed_ids.push_back(id.value());
    }

    /// True if stream `id` was removed recently.
    pub(crate) fn is_recently_closed(&self, id: StreamId) -> bool {
        self.closed_ids.contains(&id.value())
    }

    /// Number of open streams that we opened.
    pub(crate) fn ours_active(&self) -> usize {
        self.ours.active
    }

    /// Number of open streams that the peer opened.
    pub(crate) fn theirs_active(&self) -> usize {
        self.theirs.active
    }

    /// Number of open streams.
    pub(crate) fn active(&self) -> usize {
        self.ours.active + self.theirs.active
    }

    /// IDs of our streams, ascending.
    pub(crate) fn ours_ids(&self) -> impl DoubleEndedIterator<Item = StreamId> + '_ {
        self.ours
            .entries
            .iter()
            .map(|entry| StreamId::new(entry.id))
    }

    /// IDs of all streams, ours first.
    pub(crate) fn ids(&self) -> Vec<StreamId> {
        let sides = [&self.ours, &self.theirs];
        sides
            .iter()
            .flat_map(|side| &side.entries)
            .map(|entry| StreamId::new(entry.id))
            .collect()
    }
}
