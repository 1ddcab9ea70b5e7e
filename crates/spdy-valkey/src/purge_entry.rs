//! Encodes and decodes a purge in the log.
//!
//! ```text
//!   0   1  version, 1
//!   1  16  its writer: a random name, created at program start
//!  17   1  0: the log begins    1: purged, gone    2: purged, stale    3: nothing from before is in a part
//!  18   1  with 3: the part of the cluster
//!          with 1 and 2:  0: prefix of keys    1: tag of a site    2: tag of an origin
//!  19   …  the prefix; or the length of the site or origin in 4 bytes, that, and the tag
//! ```

use bytes::{Buf, Bytes};
use spdy_cache::purge_tags::PurgeTag;
use spdy_cache::shared_tier::PurgeTarget;

const VERSION: u8 = 1;
const HEAD_BYTES: usize = 18;

/// The writer of an entry.
pub(crate) type Writer = [u8; 16];

/// One entry of the log.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Entry {
    pub(crate) by: Writer,
    pub(crate) what: PurgeEvent,
}

/// The content of an entry.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum PurgeEvent {
    /// The log begins.
    Begin,
    /// All objects that were stored earlier in this part of the cluster are invalid. Objects in the caches' own tiers are not
    /// affected.
    PartReset { part: u8 },
    /// A purge of `target`.
    Purge { target: PurgeTarget, soft: bool },
}

impl Entry {
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.extend_from_slice(&self.by);
        let (target, soft) = match &self.what {
            PurgeEvent::Purge { target, soft } => (target, *soft),
            PurgeEvent::Begin => {
                out.push(0);
                return out;
            }
            PurgeEvent::PartReset { part } => {
                out.extend_from_slice(&[3, *part]);
                return out;
            }
        };
        out.push(if soft { 2 } else { 1 });
        let (kind, owner, rest) = match target {
            PurgeTarget::Prefix(prefix) => (0, None, &prefix[..]),
            PurgeTarget::Tag(PurgeTag::Site { site, tag }) => (1, Some(site), &tag[..]),
            PurgeTarget::Tag(PurgeTag::Origin { origin, group }) => (2, Some(origin), &group[..]),
        };
        out.push(kind);
        if let Some(owner) = owner {
            let len =
                u32::try_from(owner.len()).expect("the owner is part of a key, which is short");
            out.extend_from_slice(&len.to_be_bytes());
            out.extend_from_slice(owner);
        }
        out.extend_from_slice(rest);
        out
    }

    /// Decodes an entry. One that cannot be decoded was written by a later version and may have any meaning, so it purges
    /// everything.
    pub(crate) fn decode(bytes: &[u8]) -> Self {
        read(bytes).unwrap_or_else(|| Self {
            by: Writer::default(),
            what: PurgeEvent::Purge {
                target: PurgeTarget::all(),
                soft: true,
            },
        })
    }
}

fn read(bytes: &[u8]) -> Option<Entry> {
    let (head, mut rest) = bytes.split_at_checked(HEAD_BYTES)?;
    let by = head[1..17].try_into().ok()?;
    let soft = match (head[0], head[17], rest) {
        (VERSION, 0, []) => {
            let what = PurgeEvent::Begin;
            return Some(Entry { by, what });
        }
        (VERSION, 1, _) => false,
        (VERSION, 2, _) => true,
        (VERSION, 3, &[part]) => {
            let what = PurgeEvent::PartReset { part };
            return Some(Entry { by, what });
        }
        _ => return None,
    };
    let target = match rest.try_get_u8().ok()? {
        0 => PurgeTarget::Prefix(Bytes::copy_from_slice(rest)),
        kind => {
            let len = rest.try_get_u32().ok()? as usize;
            let (owner, tag) = rest.split_at_checked(len)?;
            let (owner, tag) = (owner.to_vec(), tag.to_vec());
            PurgeTarget::Tag(match kind {
                1 => PurgeTag::Site { site: owner, tag },
                2 => PurgeTag::Origin {
                    origin: owner,
                    group: tag,
                },
                _ => return None,
            })
        }
    };
    Some(Entry {
        by,
        what: PurgeEvent::Purge { target, soft },
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(any::<u8>(), 0..40)
    }

    fn any_what() -> impl Strategy<Value = PurgeEvent> {
        let target = prop_oneof![
            any_bytes().prop_map(|prefix| PurgeTarget::Prefix(prefix.into())),
            (any_bytes(), any_bytes())
                .prop_map(|(site, tag)| PurgeTarget::Tag(PurgeTag::Site { site, tag })),
            (any_bytes(), any_bytes())
                .prop_map(|(origin, group)| PurgeTarget::Tag(PurgeTag::Origin { origin, group })),
        ];
        prop_oneof![
            Just(PurgeEvent::Begin),
            any::<u8>().prop_map(|part| PurgeEvent::PartReset { part }),
            (target, any::<bool>()).prop_map(|(target, soft)| PurgeEvent::Purge { target, soft }),
        ]
    }

    proptest! {
        #[test]
        fn an_encoded_entry_decodes_to_itself(by in any::<Writer>(), what in any_what()) {
            let entry = Entry { by, what };
            prop_assert_eq!(Entry::decode(&entry.encode()), entry);
        }

        #[test]
        fn an_unknown_entry_purges_everything(bytes in any_bytes()) {
            let read = Entry::decode(&bytes);
            let is_one = read.encode() == bytes;
            let means_all = matches!(&read.what, PurgeEvent::Purge { target, .. } if *target == PurgeTarget::all());
            prop_assert!(is_one || means_all, "{:?}", read);
        }
    }
}
