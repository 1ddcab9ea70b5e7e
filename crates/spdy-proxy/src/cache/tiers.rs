//! Stores responses in tiers: memory, the disk behind it, and a tier behind that which several machines share.
//!
//! ```text
//!  a miss ──▶ disk ──▶ shared ──▶ the origin        what is found is lifted into the tiers before it
//!  keep, forget, purge ──▶ all of them
//! ```
//!
//! A hit in memory uses no other tier.

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use spdy_cache::body::Body as KeptBody;
use spdy_cache::key::Key;
use spdy_cache::memory_store::Object;
use spdy_cache::shared_tier::SharedTier;
use spdy_cache::stored::Stored;

use crate::cache::disk::store::DiskStore;
use crate::cache::purge::PurgeSnapshot;
use crate::proxy::Proxy;
use crate::request::proxy_request::ProxyRequest;

/// How long a request waits for the disk, which may hang. After that, the next tier is used.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

impl Proxy {
    /// Also stores responses on `disk` from now on, and serves what is there. Only the first call has an effect.
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

    /// Also stores responses in `tier` from now on, and serves what other machines stored there. Only the first call has an effect. Pass
    /// purges of other machines to [`apply_remote_purge`](Self::apply_remote_purge).
    pub fn set_shared_tier(&self, tier: Arc<dyn SharedTier>) {
        if self.shared.set(tier).is_err() {
            tracing::warn!("a second shared tier was given");
        }
    }

    /// The tier that is shared with other machines, if there is one.
    #[must_use]
    pub fn shared(&self) -> Option<&dyn SharedTier> {
        self.shared.get().map(|tier| &**tier)
    }

    /// Copies the response for `wanted` from the disk or the shared tier into memory; `false` if they have none.
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

    /// Copies the response from the shared tier into memory and disk, if it is newer than `known`.
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

    /// The same, if `known` was fresh once and is stale now.
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

    /// The state of purges now, for a fetch that begins.
    pub(crate) fn since(&self) -> PurgeSnapshot {
        let mark = self.shared().map(SharedTier::purge_version);
        PurgeSnapshot {
            purges: self.purges.now(),
            mark: mark.unwrap_or_default(),
        }
    }

    /// Stores a response in every tier, unless a purge since `since` matched its key.
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

    /// Stores it on the disk and in memory.
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

    /// Stores it in memory, unless a purge after count `purges` matched its key.
    fn store_in_memory(
        &self,
        key: &Key,
        stored: Stored,
        body: KeptBody,
        purges: u64,
    ) -> Option<Object> {
        let object = self.memory.store(key, stored, body)?;
        // A purge in the meantime may have searched memory before the object was in it.
        if self.purges.purged_since(key, purges) {
            self.memory.remove(&object);
            return None;
        }
        Some(object)
    }

    /// Removes `object` from every tier: the origin no longer permits its use.
    pub(crate) fn remove(&self, key: &Key, object: &Object) {
        if let Some(disk) = self.disk.get() {
            disk.remove_entry(key, object.stored());
        }
        if let Some(shared) = self.shared() {
            shared.remove(key.url());
        }
        self.memory.remove(object);
    }
    /// Marks `object` as stale in memory and removes it from the other tiers: the origin has another version.
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
