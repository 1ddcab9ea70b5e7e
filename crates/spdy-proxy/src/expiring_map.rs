//! A map with limits for the lifetime and the number of its entries.

use std::collections::BTreeMap;
use std::time::Duration;

use spdy_clock::Instant;

/// Keys, each with a `V`. With too many, the oldest entry is removed.
#[derive(Debug)]
pub(crate) struct ExpiringMap<K, V = ()> {
    lifetime: Duration,
    most: usize,
    /// Each value with the number of its insertion.
    entries: BTreeMap<K, (u64, V)>,
    /// By the number of its insertion: when each entry expires.
    by_expiry: BTreeMap<u64, (Instant, K)>,
    next_turn: u64,
}

impl<K: Ord + Clone, V> ExpiringMap<K, V> {
    /// Up to `most` entries, each for `lifetime`.
    pub(crate) fn new(lifetime: Duration, most: usize) -> Self {
        Self {
            lifetime,
            most,
            entries: BTreeMap::new(),
            by_expiry: BTreeMap::new(),
            next_turn: 0,
        }
    }

    /// Stores `value` under `key` at `now`. An entry that exists already keeps its expiry.
    pub(crate) fn insert(&mut self, key: &K, value: V, now: Instant) {
        if let Some((_, current)) = self.entries.get_mut(key) {
            *current = value;
        } else {
            let turn = self.next_turn;
            self.next_turn += 1;
            self.entries.insert(key.clone(), (turn, value));
            let until = now + self.lifetime;
            self.by_expiry.insert(turn, (until, key.clone()));
        }
        self.remove_expired(now);
    }

    /// The value of `key`, if it has not expired.
    pub(crate) fn get(&mut self, key: &K, now: Instant) -> Option<&V> {
        self.remove_expired(now);
        self.entries.get(key).map(|(_, value)| value)
    }

    /// Removes the entries from `first` on, in key order, up to the first key for which `is_meant` is false. Other entries are not visited.
    pub(crate) fn remove_range(&mut self, first: &K, mut is_meant: impl FnMut(&K) -> bool) {
        while let Some((key, (turn, _))) = self.entries.range::<K, _>(first..).next()
            && is_meant(key)
        {
            let (key, turn) = (key.clone(), *turn);
            self.entries.remove(&key);
            self.by_expiry.remove(&turn);
        }
    }

    fn remove_expired(&mut self, now: Instant) {
        while let Some((_, (until, _))) = self.by_expiry.first_key_value()
            && (*until <= now || self.by_expiry.len() > self.most)
        {
            if let Some((_, (_, key))) = self.by_expiry.pop_first() {
                self.entries.remove(&key);
            }
        }
    }
}

impl<K: Ord + Clone> ExpiringMap<K> {
    /// Adds `key` at `now`. If it is in the map already, it keeps its expiry.
    pub(crate) fn insert_key(&mut self, key: &K, now: Instant) {
        self.insert(key, (), now);
    }

    /// Whether `key` is in the map and has not expired.
    pub(crate) fn has(&mut self, key: &K, now: Instant) -> bool {
        self.get(key, now).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(at: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(at)
    }

    #[test]
    fn entries_and_lifetime_are_limited() {
        let mut map = ExpiringMap::new(Duration::from_secs(10), 3);
        for key in 0..4 {
            map.insert_key(&key, second(key));
        }
        let remaining: Vec<_> = (0..4).filter(|key| map.has(key, second(4))).collect();
        assert_eq!(remaining, [1, 2, 3], "one too many");
        // Inserted again, it does not live longer.
        map.insert_key(&1, second(5));
        let remaining: Vec<_> = (0..4).filter(|key| map.has(key, second(11))).collect();
        assert_eq!(remaining, [2, 3]);
    }

    #[test]
    fn reinserted_key_has_full_lifetime() {
        let mut map = ExpiringMap::new(Duration::from_secs(10), 3);
        map.insert(&'a', 1, second(0));
        map.insert(&'b', 1, second(0));
        map.remove_range(&'a', |key| *key == 'a');
        assert_eq!(map.get(&'a', second(1)), None);
        assert_eq!(map.get(&'b', second(1)), Some(&1));
        map.insert(&'a', 2, second(5));
        assert_eq!(map.get(&'a', second(14)), Some(&2));
        assert_eq!(map.get(&'a', second(15)), None);
    }

    /// Every POST of a client calls this, for any URL.
    #[test]
    fn remove_range_visits_only_matching_keys_and_next() {
        let mut map = ExpiringMap::new(Duration::from_secs(10), 4096);
        for key in 0..4096 {
            map.insert_key(&key, second(0));
        }
        let mut visited = Vec::new();
        map.remove_range(&1000, |key| {
            visited.push(*key);
            *key < 1003
        });
        assert_eq!(visited, [1000, 1001, 1002, 1003]);
        let removed: Vec<_> = (0..4096).filter(|key| !map.has(key, second(1))).collect();
        assert_eq!(removed, [1000, 1001, 1002]);
    }
}
