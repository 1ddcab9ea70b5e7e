//! Chooses the stream that sends DATA next (SPDY/3.1 §2.3.3).
//!
//! There is a queue for each of the eight priorities. The most urgent queue that is not empty is served first, and its streams take
//! turns of one frame. So that no stream starves, one frame in every `guard` is taken from the less urgent queues, which take turns
//! among themselves: with the default of 16, every waiting level gets at least 1/16 of the frames divided by the number of such
//! levels. The spec allows starvation; the guard is our addition (choice).

use std::collections::VecDeque;

use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;

/// The streams that have DATA and credit, by priority.
#[derive(Debug)]
pub(crate) struct Scheduler {
    levels: [VecDeque<StreamId>; Priority::LEVELS],
    /// Frames that the most urgent level sent in a row while another level waited.
    streak: u32,
    guard: u32,
    /// The less urgent level that was served last.
    last_share: usize,
}

impl Scheduler {
    /// Serves one frame in `guard` from less urgent levels; with 0 none.
    pub(crate) fn new(guard: u32) -> Self {
        Self {
            levels: Default::default(),
            streak: 0,
            guard,
            last_share: 0,
        }
    }

    /// Appends `id` to the queue of its level. The caller makes sure that it is in no queue.
    pub(crate) fn push(&mut self, priority: Priority, id: StreamId) {
        self.levels[usize::from(priority.level())].push_back(id);
    }

    /// The number of queued streams.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.levels.iter().map(VecDeque::len).sum()
    }

    /// True if no stream is queued.
    pub(crate) fn is_empty(&self) -> bool {
        self.levels.iter().all(VecDeque::is_empty)
    }

    /// Removes `id` from the queue of its level.
    pub(crate) fn remove(&mut self, priority: Priority, id: StreamId) {
        self.levels[usize::from(priority.level())].retain(|&other| other != id);
    }

    /// Removes and returns the next stream.
    pub(crate) fn pop(&mut self) -> Option<StreamId> {
        let urgent = self.levels.iter().position(|level| !level.is_empty())?;
        let level = if self.guard > 0 && self.streak + 1 >= self.guard {
            self.share_after(urgent).unwrap_or(urgent)
        } else {
            urgent
        };
        self.levels[level].pop_front()
    }

    /// Counts a frame that was sent at `priority`; [`pop`](Self::pop) uses the count.
    pub(crate) fn sent(&mut self, priority: Priority) {
        let level = usize::from(priority.level());
        if self.levels[..level]
            .iter()
            .any(|more_urgent| !more_urgent.is_empty())
        {
            self.streak = 0;
            self.last_share = level;
        } else if self.levels[level + 1..]
            .iter()
            .any(|less_urgent| !less_urgent.is_empty())
        {
            self.streak = self.streak.saturating_add(1);
        } else {
            self.streak = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.levels.iter_mut().for_each(VecDeque::clear);
    }

    /// The level below `urgent` that is served next.
    fn share_after(&self, urgent: usize) -> Option<usize> {
        let waits = |&level: &usize| level > urgent && !self.levels[level].is_empty();
        (self.last_share + 1..Priority::LEVELS)
            .chain(0..=self.last_share)
            .find(waits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of frames that each stream gets out of `frames` when every stream always has more DATA.
    fn turns(scheduler: &mut Scheduler, streams: &[(u8, u32)], frames: usize) -> Vec<u32> {
        let priority = |id| Priority::new(streams.iter().find(|s| s.1 == id).unwrap().0);
        for &(level, id) in streams {
            scheduler.push(Priority::new(level), StreamId::new(id));
        }
        (0..frames)
            .map(|_| {
                let id = scheduler.pop().unwrap();
                scheduler.push(priority(id.value()), id);
                scheduler.sent(priority(id.value()));
                id.value()
            })
            .collect()
    }

    #[test]
    fn a_stream_that_was_removed_has_no_turn() {
        let mut scheduler = Scheduler::new(16);
        for id in [1, 3, 5] {
            scheduler.push(Priority::HIGHEST, StreamId::new(id));
        }
        scheduler.remove(Priority::HIGHEST, StreamId::new(3));
        let turns: Vec<_> = std::iter::from_fn(|| scheduler.pop()).collect();
        assert_eq!(turns, [1, 5].map(StreamId::new));
    }

    #[test]
    fn streams_of_one_level_take_turns() {
        let turns = turns(&mut Scheduler::new(16), &[(3, 1), (3, 3), (3, 5)], 6);
        assert_eq!(turns, [1, 3, 5, 1, 3, 5]);
    }

    #[test]
    fn less_urgent_levels_share_one_frame_in_sixteen() {
        let turns = turns(&mut Scheduler::new(16), &[(0, 1), (4, 3), (7, 5)], 64);
        let of = |id| turns.iter().filter(|&&turn| turn == id).count();
        assert_eq!((of(1), of(3), of(5)), (60, 2, 2));
    }

    #[test]
    fn without_the_guard_the_most_urgent_has_every_frame() {
        assert_eq!(
            turns(&mut Scheduler::new(0), &[(7, 1), (0, 3)], 40),
            [3; 40]
        );
    }
}
