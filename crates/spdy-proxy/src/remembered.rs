//! What is known for a while of so many things, and then forgotten.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use spdy_clock::Instant;

/// Things of which one thing is known. With too many, what was noted first is forgotten.
#[derive(Debug)]
pub(crate) struct Remembered<K> {
    lifetime: Duration,
    most: usize,
    known: BTreeSet<K>,
    forget: VecDeque<(Instant, K)>,
}

impl<K: Ord + Clone> Remembered<K> {
    /// Up to `most`, each for `lifetime`.
    pub(crate) fn new(lifetime: Duration, most: usize) -> Self {
        Self {
            lifetime,
            most,
            known: BTreeSet::new(),
            forget: VecDeque::new(),
        }
    }

    /// It is so of `key` from `now` on, or has been for a while.
    pub(crate) fn note(&mut self, key: &K, now: Instant) {
        if self.known.insert(key.clone()) {
            self.forget.push_back((now + self.lifetime, key.clone()));
        }
        self.tidy(now);
    }

    /// Whether it is known of `key`.
    pub(crate) fn has(&mut self, key: &K, now: Instant) -> bool {
        self.tidy(now);
        self.known.contains(key)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_are_known_for_so_long() {
        let second = |at| Instant::ZERO + Duration::from_secs(at);
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
}
