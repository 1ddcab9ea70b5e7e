//! Digests of the URLs that one session has received, so that nothing is pushed or hinted twice.

use std::hash::Hasher as _;

use siphasher::sip::SipHasher13;

/// Limit of remembered URLs per session; above it, nothing is pushed in the session any more.
pub const REMEMBERED_URLS: usize = 2048;

/// The secret that makes digests of URLs unpredictable: random in a program, fixed in virtual time.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct DigestKey(pub [u8; 16]);

impl std::fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DigestKey")
    }
}

/// The digest of a URL in a session's history.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct UrlDigest(u64);

/// The history of one session: up to [`REMEMBERED_URLS`] digests of 8 bytes, independent of the length of the URLs.
#[derive(Debug)]
pub struct SessionHistory {
    key: DigestKey,
    /// The URLs that the client received as responses or pushes, in order.
    received: Vec<UrlDigest>,
    /// True if the limit was exceeded; no URL is remembered then.
    is_overflowed: bool,
}

impl SessionHistory {
    /// The history of a new session.
    #[must_use]
    pub fn new(key: DigestKey) -> Self {
        Self {
            key,
            received: Vec::new(),
            is_overflowed: false,
        }
    }

    /// The digest of `url` in this session.
    #[must_use]
    pub fn digest(&self, url: &str) -> UrlDigest {
        let mut hasher = SipHasher13::new_with_key(&self.key.0);
        hasher.write(url.as_bytes());
        UrlDigest(hasher.finish())
    }

    /// Records a resource that the client received, or that is sent to it.
    pub fn record(&mut self, url: UrlDigest) {
        let Err(at) = self.received.binary_search(&url) else {
            return;
        };
        if self.is_overflowed {
            return;
        }
        if self.received.len() >= REMEMBERED_URLS {
            self.is_overflowed = true;
            self.received = Vec::new();
            return;
        }
        self.received.insert(at, url);
    }

    /// True if the client may already have the resource.
    #[must_use]
    pub fn has(&self, url: UrlDigest) -> bool {
        self.is_overflowed || self.received.binary_search(&url).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(visit: &mut SessionHistory, url: &str) {
        let digest = visit.digest(url);
        visit.record(digest);
    }

    fn has(visit: &SessionHistory, url: &str) -> bool {
        visit.has(visit.digest(url))
    }

    #[test]
    fn the_history_contains_recorded_urls_only() {
        let mut visit = SessionHistory::new(DigestKey([1; 16]));
        for url in ["/b", "/a", "/b", "/c"] {
            note(&mut visit, url);
        }
        assert_eq!(visit.received.len(), 3);
        assert!(["/a", "/b", "/c"].iter().all(|url| has(&visit, url)));
        assert!(!has(&visit, "/d"));
    }

    #[test]
    fn an_overflowed_history_contains_every_url() {
        let mut visit = SessionHistory::new(DigestKey::default());
        for n in 0..REMEMBERED_URLS {
            assert!(!has(&visit, "x"), "{n}");
            note(&mut visit, &n.to_string());
        }
        assert!(!has(&visit, "x"));
        note(&mut visit, "one more");
        assert!(has(&visit, "x"));
        note(&mut visit, "and another");
        assert_eq!(visit.received.capacity(), 0);
    }

    #[test]
    fn digests_differ_by_their_key() {
        let [one, other] =
            [1, 2].map(|byte| SessionHistory::new(DigestKey([byte; 16])).digest("/a"));
        assert_ne!(one, other);
    }
}
