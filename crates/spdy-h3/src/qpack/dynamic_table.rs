//! The dynamic table: entries by absolute index; the oldest are evicted for new ones (RFC 9204 §3.2).

use std::collections::VecDeque;

use bytes::Bytes;

use crate::qpack::field::FIELD_OVERHEAD;

/// An entry, with a note of the table's owner.
#[derive(Clone, Debug)]
pub(super) struct Entry<N> {
    pub(super) name: Bytes,
    pub(super) value: Bytes,
    pub(super) note: N,
}

impl<N> Entry<N> {
    fn len(&self) -> u64 {
        entry_len(&self.name, &self.value)
    }
}

/// The size of an entry, bytes.
pub(super) fn entry_len(name: &[u8], value: &[u8]) -> u64 {
    (name.len() + value.len() + FIELD_OVERHEAD) as u64
}

/// A dynamic table.
#[derive(Debug)]
pub(super) struct DynamicTable<N> {
    /// The oldest is the first.
    entries: VecDeque<Entry<N>>,
    /// Absolute index of the first entry: the number of evicted ones.
    evicted: u64,
    len_bytes: u64,
    capacity: u64,
}

impl<N> DynamicTable<N> {
    /// An empty table with a capacity of 0.
    pub(super) fn new() -> Self {
        Self {
            entries: VecDeque::new(),
            evicted: 0,
            len_bytes: 0,
            capacity: 0,
        }
    }

    /// The capacity, bytes.
    pub(super) fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Sets the capacity, and evicts what exceeds it.
    pub(super) fn set_capacity(&mut self, capacity: u64) {
        self.capacity = capacity;
        self.evict_down_to(capacity);
    }

    /// Number of entries that were ever inserted: the absolute index of the next one.
    pub(super) fn insert_count(&self) -> u64 {
        self.evicted + self.entries.len() as u64
    }

    /// The entry with an absolute index, unless it was evicted or not inserted yet.
    pub(super) fn get(&self, index: u64) -> Option<&Entry<N>> {
        let at = usize::try_from(index.checked_sub(self.evicted)?).ok()?;
        self.entries.get(at)
    }

    /// All entries with their absolute indexes, the newest first.
    pub(super) fn newest_first(&self) -> impl Iterator<Item = (u64, &Entry<N>)> {
        let entries = self.entries.iter().enumerate().rev();
        entries.map(|(at, entry)| (self.evicted + at as u64, entry))
    }

    /// Calls `change` with each entry.
    pub(super) fn for_each_mut(&mut self, change: impl FnMut(&mut Entry<N>)) {
        self.entries.iter_mut().for_each(change);
    }

    /// Inserts an entry, and returns its absolute index; `None` if it exceeds the capacity.
    pub(super) fn insert(&mut self, name: Bytes, value: Bytes, note: N) -> Option<u64> {
        let entry = Entry { name, value, note };
        let room = self.capacity.checked_sub(entry.len())?;
        self.evict_down_to(room);
        self.len_bytes += entry.len();
        self.entries.push_back(entry);
        Some(self.insert_count() - 1)
    }

    fn evict_down_to(&mut self, len_bytes: u64) {
        while self.len_bytes > len_bytes
            && let Some(oldest) = self.entries.pop_front()
        {
            self.len_bytes -= oldest.len();
            self.evicted += 1;
        }
    }

    /// The largest entry that can be inserted without evicting those from the absolute index `first_kept` on, bytes.
    pub(super) fn room_before(&self, first_kept: u64) -> u64 {
        self.capacity - self.len_bytes + self.len_of_older(first_kept)
    }

    fn len_of_older(&self, index: u64) -> u64 {
        let older = index.saturating_sub(self.evicted);
        let older = usize::try_from(older).unwrap_or(usize::MAX);
        self.entries.iter().take(older).map(Entry::len).sum()
    }

    /// The first absolute index whose entry would remain if entries of `bytes` were inserted.
    pub(super) fn first_not_evicted_by(&self, bytes: u64) -> u64 {
        let mut room = self.capacity - self.len_bytes;
        let mut index = self.evicted;
        for entry in &self.entries {
            if room >= bytes {
                break;
            }
            room += entry.len();
            index += 1;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn insert(table: &mut DynamicTable<()>, value: &'static str) -> Option<u64> {
        table.insert(Bytes::from_static(b"n"), Bytes::from(value), ())
    }

    #[test]
    fn the_oldest_entries_make_room_and_indexes_stay() {
        let mut table = DynamicTable::new();
        assert_eq!(insert(&mut table, "a"), None); // the capacity is 0
        table.set_capacity(2 * 34);
        assert_eq!(insert(&mut table, "a"), Some(0));
        assert_eq!(insert(&mut table, "b"), Some(1));
        assert_eq!(insert(&mut table, "c"), Some(2));
        assert!(table.get(0).is_none() && table.get(3).is_none());
        assert_eq!(table.get(1).unwrap().value, "b");
        let order: Vec<u64> = table.newest_first().map(|(index, _)| index).collect();
        assert_eq!(order, [2, 1]);
        // An entry may be as large as the table, and no larger.
        let large = "x".repeat(2 * 34 - 33);
        let as_large = table.insert(Bytes::from_static(b"n"), large.clone().into(), ());
        assert_eq!(as_large, Some(3));
        assert!(table.get(2).is_none());
        let too_large = table.insert(Bytes::from_static(b"nn"), large.into(), ());
        assert_eq!((too_large, table.insert_count()), (None, 4));
        table.set_capacity(0);
        assert!(table.get(3).is_none());
        assert_eq!(table.insert_count(), 4);
    }

    #[test]
    fn room_is_what_is_free_and_what_may_be_evicted() {
        let mut table = DynamicTable::new();
        table.set_capacity(100);
        insert(&mut table, "a");
        insert(&mut table, "b");
        assert_eq!(table.room_before(0), 32);
        assert_eq!(table.room_before(1), 66);
        assert_eq!(table.room_before(9), 100);
        assert_eq!(table.first_not_evicted_by(32), 0);
        assert_eq!(table.first_not_evicted_by(33), 1);
    }
}
