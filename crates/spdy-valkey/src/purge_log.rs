//! The known part of the purge log, which determines the valid objects.
//!
//! ```text
//!  the log     Begin ─ purge ── purge ── purge ── purge ──▶
//!  known         ·       ·        ·        ·
//!  an object                      └ its version: fetched when these were known; the fourth may match it
//! ```
//!
//! An object is valid if its version is in the known part of the log, and no later purge matches it. A version that is older than
//! the known part, or from another log (one that was lost), is never valid. Clocks do not matter: the IDs of entries only have to
//! increase.

use std::collections::VecDeque;

use http::HeaderMap;
use spdy_cache::key::Key;
use spdy_cache::purge_tags;
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::shared_tier::PurgeVersion;

use crate::purge_entry::{Entry, PurgeEvent};

/// Length in bytes of the purge version in front of a stored object.
pub(crate) const PURGE_VERSION_BYTES: usize = 16;

/// Maximum number of purges in the log; objects that are older than all of them are invalid.
pub(crate) const MAX_ENTRIES: usize = 16_384;

/// The known part of the log.
#[derive(Debug, Default)]
pub(crate) struct PurgeLog {
    /// Oldest first.
    entries: VecDeque<(PurgeVersion, PurgeEvent)>,
    /// The last version of a previous log, which was not continued.
    before: PurgeVersion,
}

/// The result of checking an object.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum PurgeCheck {
    Valid,
    Purged,
    /// Its writer knew more purges than this cache.
    Unknown,
}

/// The relation of a page of the log to the known part.
#[derive(Debug, Eq, PartialEq)]
pub(crate) enum LogRead<'a> {
    /// The known part continues with these entries.
    Continues(&'a [(PurgeVersion, Entry)]),
    /// The known part does not continue: the log must be read from its beginning.
    Restart,
    /// There is no log.
    Missing,
    /// Another log than the known one, with these entries: some purges may be in neither.
    Replaced(&'a [(PurgeVersion, Entry)]),
    /// The end of the log; entries between it and the known part were trimmed.
    Gap(&'a [(PurgeVersion, Entry)]),
}

impl PurgeLog {
    /// The last version that was read, or the default.
    pub(crate) fn last(&self) -> PurgeVersion {
        self.entries
            .back()
            .map(|(version, _)| *version)
            .unwrap_or_default()
    }

    /// Handles a page that starts at [`last`](Self::last), inclusive.
    pub(crate) fn read<'a>(&mut self, page: &'a [(PurgeVersion, Entry)]) -> LogRead<'a> {
        let last = self.last();
        let Some((first, entry)) = page.first() else {
            return match self.entries.is_empty() {
                true => LogRead::Missing,
                false => self.again(),
            };
        };
        if !self.entries.is_empty() {
            if *first != last {
                return self.again();
            }
            self.add(&page[1..]);
            return LogRead::Continues(&page[1..]);
        }
        let before = std::mem::take(&mut self.before);
        let begins = entry.what == PurgeEvent::Begin;
        self.add(page);
        match (before == PurgeVersion::default(), begins) {
            (true, true) => LogRead::Continues(page),
            // Old entries are missing, and earlier ones are there: a node that had not received them took over.
            (false, true) => LogRead::Replaced(page),
            (false, false) if *first <= before => LogRead::Replaced(page),
            (_, false) => LogRead::Gap(page),
        }
    }

    fn again<'a>(&mut self) -> LogRead<'a> {
        self.before = self.last();
        self.entries.clear();
        LogRead::Restart
    }

    fn add(&mut self, new_entries: &[(PurgeVersion, Entry)]) {
        let new_entries = new_entries
            .iter()
            .map(|(version, entry)| (*version, entry.what.clone()));
        self.entries.extend(new_entries);
        let over = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..over);
    }

    /// Whether an object that was stored at `stored_version` is valid.
    pub(crate) fn check(
        &self,
        stored_version: PurgeVersion,
        subject: &PurgeSubject<'_>,
    ) -> PurgeCheck {
        let place = self
            .entries
            .binary_search_by_key(&stored_version, |(version, _)| *version);
        let later = match place {
            Ok(at) => self.entries.range(at + 1..),
            Err(at) if at == self.entries.len() => return PurgeCheck::Unknown,
            Err(_) => return PurgeCheck::Purged,
        };
        let mut later = later.map(|(_, what)| what);
        match later.any(|what| subject.matches(what)) {
            true => PurgeCheck::Purged,
            false => PurgeCheck::Valid,
        }
    }
}

/// An object to check; created before anything is locked, because its tags must be parsed from its fields.
#[derive(Debug)]
pub(crate) struct PurgeSubject<'a> {
    key: &'a Key,
    tags: Vec<PurgeTag>,
    part: usize,
}

impl<'a> PurgeSubject<'a> {
    /// The object under `key`, with these fields, in this part of the cluster.
    pub(crate) fn new(key: &'a Key, headers: &HeaderMap, part: usize) -> Self {
        let tags = purge_tags::response_tags(key, headers);
        Self { key, tags, part }
    }

    /// True if the event makes the object invalid.
    pub(crate) fn matches(&self, what: &PurgeEvent) -> bool {
        match what {
            PurgeEvent::Begin => true,
            PurgeEvent::PartReset { part } => usize::from(*part) == self.part,
            PurgeEvent::Purge { target, .. } => target.matches_tags(self.key, &self.tags),
        }
    }
}

#[cfg(test)]
mod tests {
    use spdy_cache::key::KeyParts;
    use spdy_cache::purge_tags::PurgeTag;
    use spdy_cache::shared_tier::PurgeTarget;

    use super::*;
    use crate::purge_entry::Writer;

    const SITE: &str = "https://site.test";

    fn key(target: &str) -> Key {
        let parts = KeyParts {
            site: SITE,
            scheme: "https",
            host: "site.test",
            port: 443,
            target,
            rules: "r",
        };
        Key::new(&parts).expect("the parts of the key have no zero bytes")
    }

    fn tagged() -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("cache-tag", http::HeaderValue::from_static("t"));
        headers
    }

    fn entry(at: u128, what: PurgeEvent) -> (PurgeVersion, Entry) {
        let by = Writer::default();
        (PurgeVersion(at), Entry { by, what })
    }

    fn purged(at: u128, target: PurgeTarget) -> (PurgeVersion, Entry) {
        entry(
            at,
            PurgeEvent::Purge {
                target,
                soft: false,
            },
        )
    }

    fn url(target: &str) -> PurgeTarget {
        PurgeTarget::Prefix(key(target).url().to_vec().into())
    }

    fn check(log: &PurgeLog, version: PurgeVersion, key: &Key, headers: &HeaderMap) -> PurgeCheck {
        log.check(version, &PurgeSubject::new(key, headers, 0))
    }

    fn begun() -> PurgeLog {
        let mut log = PurgeLog::default();
        let page = [entry(10, PurgeEvent::Begin), purged(20, url("/a"))];
        assert_eq!(log.read(&page), LogRead::Continues(&page));
        log
    }

    #[test]
    fn objects_fetched_before_their_purge_are_not_used() {
        let mut log = begun();
        let (key_a, key_b, none) = (key("/a"), key("/b"), HeaderMap::new());
        assert_eq!(
            check(&log, PurgeVersion(10), &key_a, &none),
            PurgeCheck::Purged
        );
        assert_eq!(
            check(&log, PurgeVersion(10), &key_b, &none),
            PurgeCheck::Valid
        );
        assert_eq!(
            check(&log, PurgeVersion(20), &key_a, &none),
            PurgeCheck::Valid
        );
        let tag = PurgeTarget::Tag(PurgeTag::of_site(SITE, "t"));
        let page = [purged(20, url("/a")), purged(30, tag)];
        assert_eq!(log.read(&page), LogRead::Continues(&page[1..]));
        assert_eq!(
            check(&log, PurgeVersion(20), &key_b, &none),
            PurgeCheck::Valid
        );
        assert_eq!(
            check(&log, PurgeVersion(20), &key_b, &tagged()),
            PurgeCheck::Purged
        );
        assert_eq!(
            check(&log, PurgeVersion(30), &key_b, &tagged()),
            PurgeCheck::Valid
        );
        let part = 3;
        let page = [
            purged(30, url("/a")),
            entry(40, PurgeEvent::PartReset { part }),
        ];
        log.read(&page);
        let of_part = |part| log.check(PurgeVersion(30), &PurgeSubject::new(&key_b, &none, part));
        assert_eq!(of_part(3), PurgeCheck::Purged);
        assert_eq!(of_part(4), PurgeCheck::Valid);
    }

    #[test]
    fn an_unknown_version_is_not_trusted() {
        let log = begun();
        let (key_b, none) = (key("/b"), HeaderMap::new());
        for unknown in [0, 9, 11, 19] {
            assert_eq!(
                check(&log, PurgeVersion(unknown), &key_b, &none),
                PurgeCheck::Purged
            );
        }
        assert_eq!(
            check(&log, PurgeVersion(21), &key_b, &none),
            PurgeCheck::Unknown
        );
        let nothing = PurgeLog::default();
        assert_eq!(
            check(&nothing, PurgeVersion(10), &key_b, &none),
            PurgeCheck::Unknown
        );
    }

    #[test]
    fn a_lost_log_differs_from_a_missed_range() {
        let again = |page: &[(PurgeVersion, Entry)]| {
            let mut log = begun();
            assert_eq!(log.read(page), LogRead::Restart);
            log
        };
        // None of its entries are there, and no new log has begun.
        let mut log = again(&[]);
        assert_eq!(log.read(&[]), LogRead::Missing);
        // A new log has begun.
        let page = [entry(30, PurgeEvent::Begin), purged(40, url("/b"))];
        assert_eq!(log.read(&page), LogRead::Replaced(&page));
        assert_eq!(
            check(&log, PurgeVersion(20), &key("/c"), &HeaderMap::new()),
            PurgeCheck::Purged
        );
        // The log was reset to an earlier state, and other entries were written in place of the lost ones.
        let mut log = again(&[purged(25, url("/b"))]);
        let page = [purged(15, url("/a")), purged(25, url("/b"))];
        assert_eq!(log.read(&page), LogRead::Replaced(&page));
        // The last known entry has been trimmed.
        let page = [purged(30, url("/a")), purged(40, url("/b"))];
        let mut log = again(&page);
        assert_eq!(log.read(&page), LogRead::Gap(&page));
        assert_eq!(log.last(), PurgeVersion(40));
    }

    #[test]
    fn a_late_reader_does_not_know_trimmed_entries() {
        let mut log = PurgeLog::default();
        let page = [purged(30, url("/a"))];
        assert_eq!(log.read(&page), LogRead::Gap(&page));
    }

    #[test]
    fn entries_past_the_limit_are_dropped() {
        let mut log = PurgeLog::default();
        let many = 0..=MAX_ENTRIES as u128;
        let page: Vec<_> = many.map(|at| purged(at + 1, url("/a"))).collect();
        log.read(&page);
        let none = HeaderMap::new();
        assert_eq!(
            check(&log, PurgeVersion(1), &key("/b"), &none),
            PurgeCheck::Purged
        );
        assert_eq!(
            check(&log, PurgeVersion(2), &key("/b"), &none),
            PurgeCheck::Valid
        );
    }
}
