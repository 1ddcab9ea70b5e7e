//! The names of the keys in the cluster, and the part of the cluster for each.
//!
//! ```text
//!  spdy:{6f0c…}             hash     the objects of one URL: name of each object ──▶ its version and head
//!  spdy:{6f0c…}:9a41…       string   one object: its version, and its sealed file
//!  spdy:{purges}            stream   the purge log (purge_entry.rs)
//!  spdy:{probe-7}           nothing  a name in part 7, to check that it answers
//! ```
//!
//! The text in braces determines the slot: all keys of a URL are on one node, and URLs are spread over all nodes. The slots are
//! divided into sixteen parts: a node has one or a few ranges of slots, so the parts show well enough what is lost with a node.

use crc16::{State, XMODEM};
use sha2::{Digest, Sha256};

use crate::part_health::PARTS;

/// Maximum length of a prefix, bytes.
pub(crate) const MAX_PREFIX_BYTES: usize = 64;
/// Number of slots of every cluster.
const SLOTS: u16 = 16_384;

/// Creates key names.
#[derive(Clone, Debug)]
pub(crate) struct KeyNames {
    prefix: String,
    probes: Vec<String>,
}

/// The index of a URL: its name, and its part of the cluster.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct IndexKey {
    /// Name of the index.
    pub(crate) index: String,
    /// Part of the cluster.
    pub(crate) part: usize,
}

impl IndexKey {
    /// The name of the key for the object `name` in the index.
    pub(crate) fn object(&self, name: &str) -> String {
        format!("{}:{name}", self.index)
    }
}

impl KeyNames {
    /// Names with `prefix`; `None` if it would affect slots, or is too long.
    pub(crate) fn new(prefix: &str) -> Option<Self> {
        if prefix.len() > MAX_PREFIX_BYTES || prefix.contains(['{', '}']) {
            return None;
        }
        let mut probes = vec![None; PARTS];
        let mut names = (0_u32..).map(|number| format!("{prefix}{{probe-{number}}}"));
        while probes.iter().any(Option::is_none) {
            let name = names.next().expect("the iterator of names is endless");
            probes[part_of(&name)].get_or_insert(name);
        }
        Some(Self {
            prefix: prefix.to_owned(),
            probes: probes.into_iter().flatten().collect(),
        })
    }

    /// The place of the index of `url` ([`Key::url`](spdy_cache::key::Key::url)).
    pub(crate) fn place(&self, url: &[u8]) -> IndexKey {
        let digest = Sha256::digest(url);
        let digits: String = digest[..16]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let index = format!("{}{{{digits}}}", self.prefix);
        let part = part_of(&index);
        IndexKey { index, part }
    }

    /// The log of purges.
    pub(crate) fn log(&self) -> String {
        format!("{}{{purges}}", self.prefix)
    }

    /// One name in each part, for probes.
    pub(crate) fn probes(&self) -> impl Iterator<Item = (usize, &str)> {
        self.probes.iter().map(String::as_str).enumerate()
    }
}

/// The part of the cluster for `name`, which is one of these names.
pub(crate) fn part_of(name: &str) -> usize {
    usize::from(slot(name)) * PARTS / usize::from(SLOTS)
}

/// The slot of a name, determined by the text in braces.
fn slot(name: &str) -> u16 {
    let tag = name.split(['{', '}']).nth(1).unwrap_or(name);
    State::<XMODEM>::calculate(tag.as_bytes()) % SLOTS
}

#[cfg(test)]
mod tests {
    use redis::cluster_routing::Slot;

    use super::*;

    #[test]
    fn keys_of_a_url_share_a_slot_and_urls_spread() {
        let names = KeyNames::new("spdy:").expect("the prefix is valid");
        let mut used = [false; PARTS];
        for number in 0..200 {
            let place = names.place(format!("site\0https\0host\0443\0/{number}\0").as_bytes());
            for name in [&place.index, &place.object("9a41")] {
                assert_eq!(Slot::new(slot(name)), Some(Slot::for_key(name)), "{name}");
                assert_eq!(part_of(name), place.part, "{name}");
            }
            used[place.part] = true;
        }
        assert!(used.iter().all(|used| *used), "{used:?}");
    }

    #[test]
    fn every_part_has_a_probe_key() {
        let names = KeyNames::new("spdy:").expect("the prefix is valid");
        assert_eq!(names.probes().count(), PARTS);
        for (part, name) in names.probes() {
            assert_eq!(part_of(name), part, "{name}");
        }
    }

    #[test]
    fn a_prefix_decides_about_no_slot() {
        assert!(KeyNames::new("a{b}").is_none());
        assert!(KeyNames::new(&"a".repeat(MAX_PREFIX_BYTES)).is_some());
        assert!(KeyNames::new(&"a".repeat(MAX_PREFIX_BYTES + 1)).is_none());
    }
}
