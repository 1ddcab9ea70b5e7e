//! Open streams by id. Ids increase by two, so those in flight are close together, and a ring finds one at once.

use std::collections::VecDeque;

/// Values by stream id, of one parity.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    /// Id of the first value.
    first: u32,
    slots: VecDeque<Option<T>>,
}

impl<T> Default for Ring<T> {
    fn default() -> Self {
        Self {
            first: 1,
            slots: VecDeque::new(),
        }
    }
}

impl<T> Ring<T> {
    /// Stores `value` under `id`, which is higher than every earlier id and of the same parity.
    pub(crate) fn insert(&mut self, id: u32, value: T) {
        if self.slots.is_empty() {
            self.first = id;
        }
        let at = ((id - self.first) / 2) as usize;
        while self.slots.len() < at {
            self.slots.push_back(None);
        }
        self.slots.push_back(Some(value));
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut T> {
        let at = (id.checked_sub(self.first)? / 2) as usize;
        self.slots.get_mut(at)?.as_mut()
    }

    pub(crate) fn remove(&mut self, id: u32) -> Option<T> {
        let at = (id.checked_sub(self.first)? / 2) as usize;
        let value = self.slots.get_mut(at)?.take();
        while let Some(None) = self.slots.front() {
            self.slots.pop_front();
            self.first += 2;
        }
        value
    }

    /// Ids and values, the oldest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let ids = (self.first..).step_by(2);
        ids.zip(&self.slots)
            .filter_map(|(id, slot)| Some((id, slot.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ring_entries_are_found_until_removed() {
        let mut ring = Ring::default();
        for id in [1, 3, 7, 9] {
            ring.insert(id, id * 10);
        }
        assert_eq!(ring.remove(7), Some(70));
        assert_eq!(ring.remove(1), Some(10));
        assert_eq!([1, 5, 7, 11].map(|id| ring.remove(id)), [None; 4]);
        assert_eq!(ring.get_mut(9), Some(&mut 90));
        assert_eq!(ring.iter().collect::<Vec<_>>(), [(3, &30), (9, &90)]);
        assert_eq!((ring.remove(3), ring.remove(9)), (Some(30), Some(90)));
        ring.insert(11, 110);
        assert_eq!(ring.remove(11), Some(110));
        assert!(ring.slots.is_empty());
    }
}
