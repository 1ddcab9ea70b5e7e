//! URLs of which nothing may be found, until the cluster has let go of them.

use std::collections::BTreeMap;

use crate::names::Place;

/// URLs that may wait; with one more, nothing that is in the tier is believed by anybody.
pub(crate) const MAX_FORGOTTEN: usize = 4096;

/// Each with when it was forgotten last: what is let go of then may be kept again.
#[derive(Debug, Default)]
pub(crate) struct Forgotten {
    places: BTreeMap<Place, u64>,
    turns: u64,
}

impl Forgotten {
    /// Adds one; `false` if there was no room, and all have made way for it.
    pub(crate) fn add(&mut self, place: &Place) -> bool {
        let has_room = self.places.len() < MAX_FORGOTTEN || self.places.contains_key(place);
        if !has_room {
            self.places.clear();
        }
        self.turns += 1;
        self.places.insert(place.clone(), self.turns);
        has_room
    }

    pub(crate) fn has(&self, place: &Place) -> bool {
        self.places.contains_key(place)
    }

    /// When it was forgotten; `None` if it is not.
    pub(crate) fn turn(&self, place: &Place) -> Option<u64> {
        self.places.get(place).copied()
    }

    /// The cluster has let go of it, as it was forgotten then.
    pub(crate) fn remove(&mut self, place: &Place, turn: u64) {
        if self.turn(place) == Some(turn) {
            self.places.remove(place);
        }
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        self.places.keys().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(number: usize) -> Place {
        Place {
            index: format!("{{{number}}}"),
            part: 0,
        }
    }

    #[test]
    fn what_is_forgotten_again_while_it_is_let_go_of_stays_forgotten() {
        let (mut forgotten, place) = (Forgotten::default(), place(0));
        assert!(forgotten.add(&place));
        let turn = forgotten.turn(&place).expect("it is in");
        assert!(forgotten.add(&place));
        forgotten.remove(&place, turn);
        assert!(forgotten.has(&place));
        let turn = forgotten.turn(&place).expect("it is in");
        forgotten.remove(&place, turn);
        assert!(!forgotten.has(&place));
    }

    #[test]
    fn more_than_may_wait_is_told() {
        let mut forgotten = Forgotten::default();
        for number in 0..MAX_FORGOTTEN {
            assert!(forgotten.add(&place(number)));
        }
        assert!(forgotten.add(&place(0)), "it is in");
        let more = place(MAX_FORGOTTEN);
        assert!(!forgotten.add(&more));
        assert_eq!(forgotten.places(), [more]);
    }
}
