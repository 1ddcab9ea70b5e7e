//! Where answers are kept, tier by tier: memory, the disk behind it, and what several machines share behind that.
//!
//! ```text
//!  a miss ──▶ disk ──▶ shared ──▶ the origin        what is found is lifted into the tiers before it
//!  keep, forget, purge ──▶ all of them
//! ```
//!
//! A hit in memory asks no other tier.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use spdy_cache::body::Body as KeptBody;
use spdy_cache::key::Key;
use spdy_cache::shared::SharedTier;
use spdy_cache::store::Object;
use spdy_cache::stored::Stored;

use crate::cache::disk::store::DiskStore;
use crate::cache::purge::PurgeSnapshot;
use crate::proxy::Proxy;
use crate::request::proxy_request::ProxyRequest;

/// How long a request waits for the disk, which may hang as no origin does: then the next is asked.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

impl Proxy {
    /// Keeps on `disk`, too, what is kept from now on, and finds what is there. It is the first that counts.
    pub fn set_disk(&self, disk: DiskStore) {
        disk.set_site_bytes(self.sites().disk_quotas());
        if self.disk.set(disk).is_err() {
            tracing::warn!("a second disk was given");
        }
    }

    /// The tier on a disk, if there is one.
    #[must_use]
    pub fn disk(&self) -> Option<&DiskStore> {
        self.disk.get()
    }

    /// Shares through `tier`, too, what is kept from now on, and finds what others keep there. It is the first that counts. What
    /// others purge is to be told to [`apply_remote_purge`](Self::apply_remote_purge).
    pub fn set_shared_tier(&self, tier: Arc<dyn SharedTier>) {
        if self.shared.set(tier).is_err() {
            tracing::warn!("a second shared tier was given");
        }
    }

    /// The tier that is shared with others, if there is one.
    #[must_use]
    pub fn shared(&self) -> Option<&dyn SharedTier> {
        self.shared.get().map(|tier| &**tier)
    }

    /// Lifts what the disk or the shared tier has for `wanted` into memory; `false` if they have nothing.
    pub(crate) async fn promote(&self, wanted: &ProxyRequest) -> bool {
        if let Some(disk) = self.disk.get() {
            let policy = self.policy(wanted.origin_kind());
            let purges = self.purges.now();
            let finding = pin!(disk.lookup(&wanted.key, &wanted.ask.headers, policy));
            let given_up = self.runtime.sleep_until(self.runtime.now() + DISK_TIMEOUT);
            let found = match select(finding, given_up).await {
                Either::Left((found, _)) => found,
                Either::Right(_) => {
                    tracing::debug!("the disk of the cache stands still");
                    None
                }
            };
            if let Some((stored, body)) = found {
                self.stylesheets.record_stored(wanted, &stored);
                return self
                    .store_in_memory(&wanted.key, stored, body, purges)
                    .is_some();
            }
        }
        self.promote_shared(wanted, None).await
    }

    /// Lifts what the shared tier has into memory, if it came later than what is `known`.
    async fn promote_shared(&self, wanted: &ProxyRequest, known: Option<&Stored>) -> bool {
        let Some(shared) = self.shared() else {
            return false;
        };
        let (policy, since) = (self.policy(wanted.origin_kind()), self.since());
        let found = shared
            .lookup(&wanted.key, &wanted.ask.headers, policy)
            .await;
        let Some((stored, body)) = found else {
            return false;
        };
        let is_known = known.is_some_and(|known| stored.times().received <= known.times().received);
        if is_known || self.purges.purged_since(&wanted.key, since.purges) {
            return false;
        }
        self.stylesheets.record_stored(wanted, &stored);
        self.store_local(&wanted.key, &Arc::new(stored), body, since.purges)
            .is_some()
    }

    /// The same, where what is `known` is stale for having been kept too long, and not by its nature.
    pub(crate) async fn promote_newer(
        &self,
        wanted: &ProxyRequest,
        known: Option<&Stored>,
        now: SystemTime,
    ) -> bool {
        let is_past = known.is_some_and(|known| {
            !known.lifetime().duration.is_zero() && known.staleness(now).is_some()
        });
        is_past && self.promote_shared(wanted, known).await
    }

    /// This moment, as far as purges go: for a fetch that begins.
    pub(crate) fn since(&self) -> PurgeSnapshot {
        let mark = self.shared().map(SharedTier::purge_version);
        PurgeSnapshot {
            purges: self.purges.now(),
            mark: mark.unwrap_or_default(),
        }
    }

    /// Keeps an answer in every tier, if its fetch, which began at `since`, saw no purge of it.
    pub(crate) fn store(
        &self,
        key: &Key,
        stored: &Arc<Stored>,
        body: KeptBody,
        since: PurgeSnapshot,
    ) -> Option<Object> {
        if self.purges.purged_since(key, since.purges) {
            return None;
        }
        if let Some(shared) = self.shared() {
            shared.store(key, stored, &body, since.mark);
        }
        self.store_local(key, stored, body, since.purges)
    }

    /// Keeps it on the disk and in memory.
    fn store_local(
        &self,
        key: &Key,
        stored: &Arc<Stored>,
        body: KeptBody,
        purges: u64,
    ) -> Option<Object> {
        if let Some(disk) = self.disk.get() {
            disk.store(key, stored.clone(), body.clone());
        }
        let kept = self.store_in_memory(key, Stored::clone(stored), body, purges);
        if let Some(disk) = self.disk.get()
            && self.purges.purged_since(key, purges)
        {
            disk.remove_entry(key, stored);
        }
        kept
    }

    /// Keeps in memory what no purge meant since there were so many.
    fn store_in_memory(
        &self,
        key: &Key,
        stored: Stored,
        body: KeptBody,
        purges: u64,
    ) -> Option<Object> {
        let object = self.memory.store(key, stored, body)?;
        // One that came meanwhile may have looked here before it was in.
        if self.purges.purged_since(key, purges) {
            self.memory.remove(&object);
            return None;
        }
        Some(object)
    }

    /// Keeps `object` no longer, in any tier: the origin took its leave back.
    pub(crate) fn remove(&self, key: &Key, object: &Object) {
        if let Some(disk) = self.disk.get() {
            disk.remove_entry(key, object.stored());
        }
        if let Some(shared) = self.shared() {
            shared.remove(key.url());
        }
        self.memory.remove(object);
    }
    /// Takes `object` for stale from now on: the origin has another.
    pub(crate) fn expire(&self, key: &Key, object: &Object) {
        if let Some(disk) = self.disk.get() {
            disk.remove_entry(key, object.stored());
        }
        if let Some(shared) = self.shared() {
            shared.remove(key.url());
        }
        object.stored().expire(self.wall_now());
    }
}
