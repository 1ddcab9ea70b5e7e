//! The resolver's cache, bounded in entries and age. Time is an argument.

use std::collections::BTreeMap;
use std::net::IpAddr;

use spdy_clock::Instant;

/// The result of a look-up that is cached: addresses, or that there are none.
pub(crate) type CachedAnswer = Result<Vec<IpAddr>, NegativeAnswer>;

/// Why there are no addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NegativeAnswer {
    /// No such name.
    Name,
    /// A name without addresses.
    Address,
}

/// Cached answers by host, with the time when each expires.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    hosts: BTreeMap<String, (Instant, CachedAnswer)>,
    ends: BTreeMap<(Instant, String), ()>,
}

impl Cache {
    /// The cached answer for `host`, if it is valid at `now`.
    pub(crate) fn get(&self, now: Instant, host: &str) -> Option<CachedAnswer> {
        let (end, answer) = self.hosts.get(host)?;
        (now < *end).then(|| answer.clone())
    }

    /// Stores `answer` until `end`. If the cache has `limit` hosts, the one that expires first is evicted.
    pub(crate) fn put(&mut self, host: &str, end: Instant, answer: CachedAnswer, limit: usize) {
        if limit == 0 {
            return;
        }
        self.forget(host);
        while self.hosts.len() >= limit {
            let Some((_, first)) = self.ends.keys().next().cloned() else {
                unreachable!("{} hosts without an expiry", self.hosts.len())
            };
            self.forget(&first);
        }
        self.hosts.insert(host.to_owned(), (end, answer));
        self.ends.insert((end, host.to_owned()), ());
    }

    fn forget(&mut self, host: &str) {
        if let Some((end, _)) = self.hosts.remove(host) {
            self.ends.remove(&(end, host.to_owned()));
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        assert_eq!(self.hosts.len(), self.ends.len());
        self.hosts.len()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(secs: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(secs)
    }

    #[test]
    fn an_entry_is_valid_until_its_end() {
        let mut cache = Cache::default();
        let answer = Ok(vec![IpAddr::from([192, 0, 2, 1])]);
        cache.put("a.test", at(10), answer.clone(), 2);
        assert_eq!(cache.get(at(9), "a.test"), Some(answer));
        assert_eq!(cache.get(at(10), "a.test"), None);
        cache.put("a.test", at(20), Err(NegativeAnswer::Name), 2);
        assert_eq!(cache.get(at(10), "a.test"), Some(Err(NegativeAnswer::Name)));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn one_host_over_the_limit_evicts_the_first_to_expire() {
        let mut cache = Cache::default();
        for (host, end) in [("a.test", 30), ("b.test", 10), ("c.test", 20)] {
            cache.put(host, at(end), Err(NegativeAnswer::Address), 2);
        }
        assert_eq!(cache.len(), 2);
        assert_eq!(cache.get(at(0), "b.test"), None);
        assert!(cache.get(at(0), "a.test").is_some());
        assert!(cache.get(at(0), "c.test").is_some());
    }
}
