//! Tags of responses, for purging them in groups.
//!
//! | field | form | a tag is of |
//! | --- | --- | --- |
//! | `Surrogate-Key` | words between spaces | the site |
//! | `Cache-Tag` | words between commas | the site |
//! | `Cache-Groups` (RFC 9875) | a structured list of strings | the origin: no other origin can invalidate it; and the site, for its operator |

use http::{HeaderMap, HeaderName};

use crate::key::Key;

static SURROGATE_KEY: HeaderName = HeaderName::from_static("surrogate-key");
static CACHE_TAG: HeaderName = HeaderName::from_static("cache-tag");
static CACHE_GROUPS: HeaderName = HeaderName::from_static("cache-groups");
static CACHE_GROUP_INVALIDATION: HeaderName = HeaderName::from_static("cache-group-invalidation");

/// A tag, with its owner.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum PurgeTag {
    /// From `Surrogate-Key`, `Cache-Tag` or `Cache-Groups`, in a site.
    Site {
        /// The site's part of the key.
        site: Vec<u8>,
        /// The tag as received.
        tag: Vec<u8>,
    },
    /// From `Cache-Groups`, in an origin of a site.
    Origin {
        /// The origin's part of the key.
        origin: Vec<u8>,
        /// The group as received.
        group: Vec<u8>,
    },
}

impl PurgeTag {
    /// A tag given by an operator.
    #[must_use]
    pub fn of_site(site: &str, tag: &str) -> Self {
        Self::Site {
            site: site.into(),
            tag: tag.into(),
        }
    }

    /// The prefix of all keys whose responses can have this tag.
    #[must_use]
    pub fn prefix(&self) -> Vec<u8> {
        let (Self::Site { site: owner, .. } | Self::Origin { origin: owner, .. }) = self;
        [owner.as_slice(), &[0]].concat()
    }

    /// Memory that the tag index uses for one object, bytes.
    pub(crate) fn weight(&self) -> usize {
        let (Self::Site { site: owner, tag }
        | Self::Origin {
            origin: owner,
            group: tag,
        }) = self;
        owner.len() + tag.len() + 2 * size_of::<Self>()
    }
}

/// The tags of a response that is stored under `key`, without duplicates.
#[must_use]
pub fn response_tags(key: &Key, headers: &HeaderMap) -> Vec<PurgeTag> {
    let site = key.site();
    let groups = strings(headers, &CACHE_GROUPS);
    let names = tag_names(headers).chain(groups.iter().map(Vec::as_slice));
    let mut tags: Vec<PurgeTag> = names
        .map(|tag| PurgeTag::Site {
            site: site.into(),
            tag: tag.into(),
        })
        .chain(groups_of(key, headers, &CACHE_GROUPS))
        .collect();
    tags.sort();
    tags.dedup();
    tags
}

/// The groups that the response to an unsafe request invalidates, in its own origin (RFC 9875 §3).
///
/// The caller must check that the request was unsafe and that the response is not an error, as with
/// [`invalidated_by`](crate::invalidate::invalidated_by).
#[must_use]
pub fn invalidated_groups(key: &Key, headers: &HeaderMap) -> Vec<PurgeTag> {
    groups_of(key, headers, &CACHE_GROUP_INVALIDATION).collect()
}

pub(crate) fn count(headers: &HeaderMap) -> usize {
    tag_names(headers).count() + strings(headers, &CACHE_GROUPS).len()
}

fn tag_names(headers: &HeaderMap) -> impl Iterator<Item = &[u8]> {
    let lines = |name| {
        headers
            .get_all(name)
            .iter()
            .map(http::HeaderValue::as_bytes)
    };
    let keys = lines(&SURROGATE_KEY).flat_map(|line| line.split(u8::is_ascii_whitespace));
    let tags = lines(&CACHE_TAG).flat_map(|line| line.split(|byte| *byte == b','));
    keys.chain(tags.map(<[u8]>::trim_ascii))
        .filter(|tag| !tag.is_empty())
}

fn groups_of(key: &Key, headers: &HeaderMap, name: &HeaderName) -> impl Iterator<Item = PurgeTag> {
    let origin = key.origin();
    strings(headers, name)
        .into_iter()
        .map(move |group| PurgeTag::Origin {
            origin: origin.into(),
            group,
        })
}

/// The strings of a structured list over all lines of a field; empty if it is not a valid list (RFC 9651 §4.2).
fn strings(headers: &HeaderMap, name: &HeaderName) -> Vec<Vec<u8>> {
    let lines: Vec<&[u8]> = headers
        .get_all(name)
        .iter()
        .map(http::HeaderValue::as_bytes)
        .collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let list: sfv::List = sfv::Parser::new(&lines.join(&b", "[..]))
        .parse()
        .unwrap_or_default();
    let strings = list.iter().filter_map(|member| match member {
        sfv::ListEntry::Item(item) => {
            Some(item.bare_item.as_string()?.as_str().as_bytes().to_vec())
        }
        sfv::ListEntry::InnerList(_) => None,
    });
    strings.collect()
}
