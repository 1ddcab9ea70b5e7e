//! The interface of a tier that several caches share.
//!
//! ```text
//!  lookup ▶ a response that was checked to its last byte, or nothing: the lookup then continues as without a tier
//!  store ─▶ written in the background, with the purge version of the start of its fetch
//!  purge ─▶ published to all caches that share the tier; their purges arrive at a PurgeListener
//! ```
//!
//! A purge applies to everything that any cache fetched before it. A [`PurgeVersion`] states which purges a cache knows.
//! A fetch carries the version of its start; a cache that knows a later matching purge does not use the result.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

use crate::body::Body;
use crate::key::Key;
use crate::purge_tags;
use crate::purge_tags::PurgeTag;
use crate::rules::policy::Policy;
use crate::rules::stored::Stored;

/// The future of an operation of the tier, perhaps on another machine.
pub type TierFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The responses to which a purge applies.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PurgeTarget {
    /// All whose key begins with these bytes; without bytes, all responses.
    Prefix(Bytes),
    /// All with this tag.
    Tag(PurgeTag),
}

impl PurgeTarget {
    /// All responses.
    #[must_use]
    pub fn all() -> Self {
        Self::Prefix(Bytes::new())
    }

    /// True if it applies to a stored response with these fields, under `key`.
    #[must_use]
    pub fn matches(&self, key: &Key, headers: &HeaderMap) -> bool {
        match self {
            Self::Prefix(_) => self.matches_tags(key, &[]),
            Self::Tag(_) => self.matches_tags(key, &purge_tags::response_tags(key, headers)),
        }
    }

    /// True if it applies to a response with these tags, under `key`: for checking one response against many purges.
    #[must_use]
    pub fn matches_tags(&self, key: &Key, tags: &[PurgeTag]) -> bool {
        match self {
            Self::Prefix(prefix) => key.as_bytes().starts_with(prefix),
            Self::Tag(tag) => tags.contains(tag),
        }
    }
}

/// The purges that were known at some time; the default is none.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct PurgeVersion(pub u128);

/// Called for each purge of another cache; the flag is true if the objects only become stale.
pub type PurgeListener = Arc<dyn Fn(&PurgeTarget, bool) + Send + Sync>;

/// A shared tier. Its operations do not fail: an unavailable response is a miss, and a failed write is skipped.
pub trait SharedTier: fmt::Debug + Send + Sync {
    /// The newest response under `key` that matches a request with these headers.
    fn lookup<'a>(
        &'a self,
        key: &'a Key,
        request_headers: &'a HeaderMap,
        policy: &'a Policy,
    ) -> TierFuture<'a, Option<(Stored, Body)>>;

    /// The currently known purges, for [`store`](Self::store): to be taken when a fetch begins.
    fn purge_version(&self) -> PurgeVersion;

    /// Stores a response for all caches, in the background.
    fn store(&self, key: &Key, stored: &Arc<Stored>, body: &Body, since: PurgeVersion);

    /// Deletes everything stored for a URL ([`Key::url`]), because of a client's request. Other caches are not notified.
    fn remove(&self, url: &[u8]);

    /// Purges in all caches: the objects are removed, or become stale if `soft`. This cache no longer finds them from now on.
    fn purge(&self, target: PurgeTarget, soft: bool);

    /// Waits until all purges so far are available to other caches; `false` on timeout. They are then delivered later.
    fn flush_purges(&self) -> TierFuture<'_, bool>;
}
