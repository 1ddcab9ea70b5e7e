//! Private values that are in the peer's window, so that they can be repeated as a whole.
//!
//! They are not stored in the window that the match search reads. A value is compared only as a whole, and only with values of the
//! same header and the same host.

use std::collections::VecDeque;

use crate::blocks::secrets::Repeatable;

/// Stored values; one more drops the least recently used one.
const MAX_VALUES: usize = 64;

/// Hosts with separate values. One more host drops all values.
const MAX_HOSTS: usize = 32;

/// Which earlier values of its header and host a value may repeat.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum HistoryReach {
    /// All stored values.
    All,
    /// Only the last value.
    Last,
}

/// The values of one direction, the least recently used first.
#[derive(Default)]
pub(crate) struct ValueHistory {
    values: VecDeque<Value>,
    hosts: Vec<Box<[u8]>>,
    /// Index in `hosts` of the current block's host.
    host: usize,
}

struct Value {
    name: Repeatable,
    host: usize,
    /// Position of its last occurrence in the text.
    source: usize,
    bytes: Box<[u8]>,
}

impl ValueHistory {
    /// Sets the host of the values that follow; empty for a block that names no host.
    pub(crate) fn set_host(&mut self, host: &[u8]) {
        if self
            .hosts
            .get(self.host)
            .is_some_and(|current| **current == *host)
        {
            return;
        }
        self.host = match self.hosts.iter().position(|candidate| **candidate == *host) {
            Some(index) => index,
            None => {
                if self.hosts.len() == MAX_HOSTS {
                    self.hosts.clear();
                    self.values.clear();
                }
                self.hosts.push(host.into());
                self.hosts.len() - 1
            }
        };
    }

    /// Stores a value of `name` that starts at `at`. Returns the start of the last equal value within
    /// [reach](Repeatable::reach).
    pub(crate) fn replace(&mut self, name: Repeatable, bytes: &[u8], at: usize) -> Option<usize> {
        let host = self.host;
        let is_other = |value: &Value| value.name != name || value.host != host;
        let equal = |value: &Value| !is_other(value) && *value.bytes == *bytes;
        if let Some(mut value) = self
            .values
            .iter()
            .position(equal)
            .and_then(|index| self.values.remove(index))
        {
            let source = std::mem::replace(&mut value.source, at);
            self.values.push_back(value);
            return Some(source);
        }
        match name.reach() {
            HistoryReach::All => {}
            HistoryReach::Last => self.values.retain(is_other),
        }
        if self.values.len() == MAX_VALUES {
            self.values.pop_front();
        }
        self.values.push_back(Value {
            name,
            host,
            source: at,
            bytes: bytes.into(),
        });
        None
    }

    /// Drops the values that start in the first `removed_len` bytes of the text.
    pub(crate) fn trim(&mut self, removed_len: usize) {
        self.values.retain_mut(|value| {
            let there = value.source >= removed_len;
            value.source = value.source.saturating_sub(removed_len);
            there
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stores the values `numbers` for the current host; `Some` for those that were already stored.
    fn replace_all(
        history: &mut ValueHistory,
        numbers: std::ops::Range<usize>,
    ) -> Vec<Option<usize>> {
        let replace = |number| {
            let value = format!("value {number}");
            history.replace(Repeatable::Cookie, value.as_bytes(), number)
        };
        numbers.map(replace).collect()
    }

    #[test]
    fn one_value_over_the_limit_drops_the_least_recently_used() {
        let mut history = ValueHistory::default();
        history.set_host(b"a");
        assert!(
            replace_all(&mut history, 0..MAX_VALUES)
                .iter()
                .all(Option::is_none)
        );
        // The first is used again, so the second is evicted when one more is added.
        assert_eq!(replace_all(&mut history, 0..1), [Some(0)]);
        assert_eq!(
            replace_all(&mut history, MAX_VALUES..MAX_VALUES + 1),
            [None]
        );
        assert_eq!(replace_all(&mut history, 0..3), [Some(0), None, None]);
        assert_eq!(history.values.len(), MAX_VALUES);
    }

    #[test]
    fn one_host_over_the_limit_clears_the_history() {
        let mut history = ValueHistory::default();
        for host in 0..MAX_HOSTS {
            history.set_host(format!("{host}").as_bytes());
            assert_eq!(replace_all(&mut history, 0..1), [None], "another host's");
        }
        history.set_host(b"0");
        assert_eq!(replace_all(&mut history, 0..1), [Some(0)]);
        history.set_host(b"one more");
        assert!(history.values.is_empty());
        assert_eq!(history.hosts.len(), 1);
        history.set_host(b"0");
        assert_eq!(replace_all(&mut history, 0..1), [None]);
    }

    #[test]
    fn a_value_trimmed_from_the_text_is_no_longer_found() {
        let mut history = ValueHistory::default();
        history.set_host(b"a");
        replace_all(&mut history, 0..5);
        history.trim(3);
        assert_eq!(replace_all(&mut history, 3..5), [Some(0), Some(1)]);
        assert_eq!(history.values.len(), 2);
    }

    #[test]
    fn a_referer_repeats_the_last_one_of_its_host_only() {
        let mut history = ValueHistory::default();
        let mut referer = |host: &str, value: &str, at| {
            history.set_host(host.as_bytes());
            history.replace(Repeatable::Referer, value.as_bytes(), at)
        };
        assert_eq!(referer("a", "right", 1), None);
        assert_eq!(
            referer("b", "wrong", 2),
            None,
            "the value belongs to another host"
        );
        assert_eq!(referer("a", "right", 3), Some(1));
        assert_eq!(referer("a", "wrong", 4), None);
        assert_eq!(
            referer("a", "right", 5),
            None,
            "only the last value is remembered"
        );
        assert_eq!(referer("a", "right", 6), Some(5));
        assert_eq!(history.values.len(), 2);
    }
}
