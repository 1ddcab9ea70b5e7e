//! The interface of a tier that several caches share.
//!
//! ```text
//!  find ──▶ a response whose last byte was checked, or nothing: then the lookup goes on as if there were no tier
//!  keep ──▶ written in the background, with the purge version of when its fetch began
//!  purge ─▶ published to all caches that share the tier; their purges arrive at an Ear
//! ```
//!
//! A purge applies to everything fetched before it, at every place where it is stored. A [`PurgeVersion`] is what a cache knows of
//! purges. A fetch takes the current one along; a cache that knows of a later matching purge does not use the result.

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

/// Something that is done later, perhaps on another machine.
pub type TierFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a purge means.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum PurgeTarget {
    /// Whatever has a key that begins so; with no bytes, everything.
    Prefix(Bytes),
    /// Whatever has this tag.
    Tag(PurgeTag),
}

impl PurgeTarget {
    /// Everything there is.
    #[must_use]
    pub fn all() -> Self {
        Self::Prefix(Bytes::new())
    }

    /// True if it matches a stored answer with these fields, under `key`.
    #[must_use]
    pub fn matches(&self, key: &Key, headers: &HeaderMap) -> bool {
        match self {
            Self::Prefix(_) => self.matches_tags(key, &[]),
            Self::Tag(_) => self.matches_tags(key, &purge_tags::response_tags(key, headers)),
        }
    }

    /// Whether it means what has these tags, under `key`: where one answer is held against many purges.
    #[must_use]
    pub fn matches_tags(&self, key: &Key, tags: &[PurgeTag]) -> bool {
        match self {
            Self::Prefix(prefix) => key.as_bytes().starts_with(prefix),
            Self::Tag(tag) => tags.contains(tag),
        }
    }
}

/// How much was known of purges at a moment; the default is nothing.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct PurgeVersion(pub u128);

/// Called for each purge of others; the flag states whether they left the objects as stale.
pub type PurgeListener = Arc<dyn Fn(&PurgeTarget, bool) + Send + Sync>;

/// The tier. None of it fails: what cannot be had is a miss, what cannot be written is left out.
pub trait SharedTier: fmt::Debug + Send + Sync {
    /// The newest response under `key` that matches a request with these headers.
    fn lookup<'a>(
        &'a self,
        key: &'a Key,
        request_headers: &'a HeaderMap,
        policy: &'a Policy,
    ) -> TierFuture<'a, Option<(Stored, Body)>>;

    /// What is known of purges now: for [`store`](Self::store), taken where a fetch begins.
    fn purge_version(&self) -> PurgeVersion;

    /// Keeps an answer for all, sooner or later.
    fn store(&self, key: &Key, stored: &Arc<Stored>, body: &Body, since: PurgeVersion);

    /// Deletes everything stored of a URL ([`Key::url`]), because of a client's request. Others are not notified.
    fn remove(&self, url: &[u8]);

    /// Purges in all caches: the objects are removed, or become stale if `soft`. This cache no longer finds them from
    /// now on.
    fn purge(&self, target: PurgeTarget, soft: bool);

    /// Waits until others can read all purges so far; `false` if that takes too long. They are delivered later then.
    fn flush_purges(&self) -> TierFuture<'_, bool>;
}
