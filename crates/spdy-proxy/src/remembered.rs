//! What is known for a while of so many things, and then forgotten.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;

/// Things of which something is known: the same of all, or a `V` of each. With too many, what was noted first is forgotten.
#[derive(Debug)]
pub(crate) struct Remembered<K, V = ()> {
    lifetime: Duration,
    most: usize,
    known: BTreeMap<K, V>,
    forget: VecDeque<(Instant, K)>,
}

impl<K: Ord + Clone, V> Remembered<K, V> {
    /// Up to `most`, each for `lifetime`.
    pub(crate) fn new(lifetime: Duration, most: usize) -> Self {
        Self {
            lifetime,
            most,
            known: BTreeMap::new(),
            forget: VecDeque::new(),
        }
    }

    /// `value` is so of `key` from `now` on. What is known of it already it is known for no longer.
    pub(crate) fn put(&mut self, key: &K, value: V, now: Instant) {
        if self.known.insert(key.clone(), value).is_none() {
            self.forget.push_back((now + self.lifetime, key.clone()));
        }
        self.tidy(now);
    }

    /// What is known of `key`.
    pub(crate) fn get(&mut self, key: &K, now: Instant) -> Option<&V> {
        self.tidy(now);
        self.known.get(key)
    }

    /// Nothing is known any more of what `is_meant`.
    pub(crate) fn forget(&mut self, is_meant: impl Fn(&K) -> bool) {
        self.known.retain(|key, _| !is_meant(key));
        let known = &self.known;
        self.forget.retain(|(_, key)| known.contains_key(key));
    }

    fn tidy(&mut self, now: Instant) {
        while let Some((until, _)) = self.forget.front()
            && (*until <= now || self.forget.len() > self.most)
        {
            if let Some((_, key)) = self.forget.pop_front() {
                self.known.remove(&key);
            }
        }
    }
}

impl<K: Ord + Clone> Remembered<K> {
    /// It is so of `key` from `now` on, or has been for a while.
    pub(crate) fn note(&mut self, key: &K, now: Instant) {
        self.put(key, (), now);
    }

    /// Whether it is known of `key`.
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
    fn so_many_are_known_for_so_long() {
        let mut all = Remembered::new(Duration::from_secs(10), 3);
        for key in 0..4 {
            all.note(&key, second(key));
        }
        let known: Vec<_> = (0..4).filter(|key| all.has(key, second(4))).collect();
        assert_eq!(known, [1, 2, 3], "one too many");
        // Noted again, it is not known for longer.
        all.note(&1, second(5));
        let known: Vec<_> = (0..4).filter(|key| all.has(key, second(11))).collect();
        assert_eq!(known, [2, 3]);
    }

    #[test]
    fn what_is_forgotten_and_noted_again_is_known_for_its_whole_time() {
        let mut all = Remembered::new(Duration::from_secs(10), 3);
        all.put(&'a', 1, second(0));
        all.put(&'b', 1, second(0));
        all.forget(|key| *key == 'a');
        assert_eq!(all.get(&'a', second(1)), None);
        assert_eq!(all.get(&'b', second(1)), Some(&1));
        all.put(&'a', 2, second(5));
        assert_eq!(all.get(&'a', second(14)), Some(&2));
        assert_eq!(all.get(&'a', second(15)), None);
    }
}
