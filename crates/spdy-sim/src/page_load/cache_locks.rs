//! The locks of a browser's HTTP cache: a request for a URL waits until the one before it for the same URL has the head of its response.
//!
//! The cache may then know that it can answer the request. Players request several ranges of a video in this way.

use std::collections::{BTreeMap, VecDeque};

/// The locks of one page.
#[derive(Debug, Default)]
pub(super) struct CacheLocks {
    /// Nodes whose URLs others have too, with the numbers of their URLs.
    urls: BTreeMap<usize, usize>,
    /// By URL: the request that holds its lock, and those that wait for it, in their order.
    queues: BTreeMap<usize, VecDeque<usize>>,
}

impl CacheLocks {
    pub(super) fn new(urls: BTreeMap<usize, usize>) -> Self {
        Self {
            urls,
            queues: BTreeMap::new(),
        }
    }

    /// Adds the request for `node`. Returns whether it may be sent now.
    pub(super) fn acquire(&mut self, node: usize) -> bool {
        let Some(&url) = self.urls.get(&node) else {
            return true;
        };
        let queue = self.queues.entry(url).or_default();
        queue.push_back(node);
        queue.len() == 1
    }

    /// The request for `node` has the head of its response, or has ended. Returns the next one, which may be sent now.
    pub(super) fn release(&mut self, node: usize) -> Option<usize> {
        let queue = self.queues.get_mut(self.urls.get(&node)?)?;
        let at = queue.iter().position(|&it| it == node)?;
        queue.remove(at);
        queue.front().copied().filter(|_| at == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_for_one_url_wait_for_each_other_in_their_order() {
        let mut locks = CacheLocks::new([(1, 0), (2, 0), (3, 0), (4, 1), (5, 1)].into());
        assert!(locks.acquire(7), "no other node has its URL");
        assert_eq!(locks.release(7), None);
        assert!(locks.acquire(1));
        assert!(!locks.acquire(2));
        assert!(!locks.acquire(3));
        assert!(locks.acquire(4), "another URL");
        assert_eq!(locks.release(1), Some(2));
        assert_eq!(locks.release(1), None, "its end, after its head");
        assert_eq!(locks.release(3), None, "it ended before it was sent");
        assert_eq!(locks.release(2), None);
        assert!(locks.acquire(1), "the lock is free");
        assert_eq!(locks.release(4), None);
        assert!(locks.acquire(5));
    }
}
