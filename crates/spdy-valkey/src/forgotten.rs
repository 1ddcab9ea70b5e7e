//! URLs of which nothing may be found, until the cluster has let go of them.

use std::collections::BTreeMap;

/// URLs that may wait; with one more, nothing that is in the tier is believed by anybody.
pub(crate) const MAX_FORGOTTEN: usize = 4096;

/// Each with when it was forgotten last: what is let go of then may be kept again.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    urls: BTreeMap<Vec<u8>, u64>,
    turns: u64,
}

impl Forgotten {
    /// Adds one; `false` if there was no room, and all have made way for it.
    pub(crate) fn add(&mut self, url: &[u8]) -> bool {
        let has_room = self.urls.len() < MAX_FORGOTTEN || self.urls.contains_key(url);
        if !has_room {
            self.urls.clear();
        }
        self.turns += 1;
        self.urls.insert(url.to_vec(), self.turns);
        has_room
    }

    pub(crate) fn has(&self, url: &[u8]) -> bool {
        self.urls.contains_key(url)
    }

    /// When it was forgotten; `None` if it is not.
    pub(crate) fn turn(&self, url: &[u8]) -> Option<u64> {
        self.urls.get(url).copied()
    }

    /// The cluster has let go of it, as it was forgotten then.
    pub(crate) fn remove(&mut self, url: &[u8], turn: u64) {
        if self.turn(url) == Some(turn) {
            self.urls.remove(url);
        }
    }

    pub(crate) fn urls(&self) -> Vec<Vec<u8>> {
        self.urls.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forgotten_again_while_it_is_let_go_of_stays_forgotten() {
        let mut forgotten = Forgotten::default();
        assert!(forgotten.add(b"a"));
        let turn = forgotten.turn(b"a").expect("it is in");
        assert!(forgotten.add(b"a"));
        forgotten.remove(b"a", turn);
        assert!(forgotten.has(b"a"));
        let turn = forgotten.turn(b"a").expect("it is in");
        forgotten.remove(b"a", turn);
        assert!(!forgotten.has(b"a"));
    }

    #[test]
    fn more_than_may_wait_is_told() {
        let mut forgotten = Forgotten::default();
        for number in 0..MAX_FORGOTTEN {
            assert!(forgotten.add(&number.to_be_bytes()));
        }
        assert!(forgotten.add(&0_usize.to_be_bytes()), "it is in");
        assert!(!forgotten.add(b"one more"));
        assert_eq!(forgotten.urls(), [b"one more".to_vec()]);
    }
}
