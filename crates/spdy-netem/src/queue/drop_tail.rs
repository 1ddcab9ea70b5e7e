//! A drop-tail queue: it drops a new packet past its capacity, counted in packets or in bytes.

use std::collections::VecDeque;

use spdy_clock::Instant;

use super::config::QueueLimit;

/// The accepted packets that have not completely left, including the one in transmission (as dummynet counts its slots).
#[derive(Clone, Debug)]
pub struct DropTail {
    limit: QueueLimit,
    waiting: VecDeque<(Instant, usize)>,
    waiting_bytes: u64,
}

impl DropTail {
    /// An empty queue.
    #[must_use]
    pub const fn new(limit: QueueLimit) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
        }
    }

    /// True if a packet of `len_bytes` that arrives at `now` fits. Calls are in order of `now`.
    pub fn has_room(&mut self, now: Instant, len_bytes: usize) -> bool {
        while let Some((_, departed_bytes)) =
            self.waiting.pop_front_if(|(leaves, _)| *leaves <= now)
        {
            self.waiting_bytes -= departed_bytes as u64;
        }
        match self.limit {
            QueueLimit::Packets(limit) => self.waiting.len() < limit as usize,
            QueueLimit::Bytes(limit) => self.waiting_bytes + len_bytes as u64 <= limit,
        }
    }

    /// Adds a packet that leaves at `leaves`, no earlier than its predecessor.
    pub fn push(&mut self, leaves: Instant, len_bytes: usize) {
        self.waiting.push_back((leaves, len_bytes));
        self.waiting_bytes += len_bytes as u64;
    }

    /// Packets in the queue after the last [`has_room`](Self::has_room) or [`push`](Self::push).
    #[must_use]
    pub fn len_packets(&self) -> usize {
        self.waiting.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_has_room_once_a_packet_has_departed() {
        let mut queue = DropTail::new(QueueLimit::Packets(2));
        for leaves in [10, 20] {
            assert!(queue.has_room(Instant::ZERO, 1_500));
            queue.push(Instant::from_millis(leaves), 1_500);
        }
        assert!(!queue.has_room(Instant::from_micros(9_999), 40));
        assert!(
            queue.has_room(Instant::from_millis(10), 1_500),
            "the first packet has just left"
        );
        assert_eq!(queue.len_packets(), 1);
    }

    #[test]
    fn a_limit_in_bytes_includes_the_new_packet() {
        let mut queue = DropTail::new(QueueLimit::Bytes(2_000));
        assert!(queue.has_room(Instant::ZERO, 1_500));
        queue.push(Instant::from_millis(10), 1_500);
        assert!(queue.has_room(Instant::ZERO, 500));
        assert!(!queue.has_room(Instant::ZERO, 501));
    }
}
