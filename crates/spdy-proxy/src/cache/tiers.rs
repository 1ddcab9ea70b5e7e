//! Stores responses in tiers: memory, then the disk, then a tier that several machines share.
//!
//! ```text
//!  a miss ──▶ disk ──▶ shared ──▶ the origin        a response that is found is copied into the tiers before it
//!  store, remove, purge ──▶ all of them
//! ```
//!
//! A hit in memory uses no other tier.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use futures_util::future::{Either, select};
use spdy_cache::body::Body as CacheBody;
use spdy_cache::key::Key;
use spdy_cache::lookup::{self, Lookup};
use spdy_cache::memory_store::{Object, StoreConfig, StoreCounters};
use spdy_cache::policy::{Policy, SetCookie};
use spdy_cache::shared_tier::SharedTier;
use spdy_cache::stored::Stored;

use crate::body::body_memory::BodyMemory;
use crate::cache::coalescer::Coalescer;
use crate::cache::disk::store::DiskStore;
use crate::cache::encoded_bodies::EncodedBodies;
use crate::cache::memory_store::MemoryStore;
use crate::cache::negative_cache::NegativeCache;
use crate::cache::purge_log::{PurgeLog, PurgeObserver, PurgeSnapshot};
use crate::cache::shared_response::{CoalesceKey, SharedResponse};
use crate::clock::Clock;
use crate::config::cache::CacheConfig;
use crate::origin_kind::OriginKind;
use crate::request::proxy_request::ProxyRequest;
use crate::sites::site_table::Sites;
use crate::telemetry::counters::Counters;

/// How long a request waits for the disk, which may hang. After that, the next tier is used.
const DISK_TIMEOUT: Duration = Duration::from_secs(2);

/// Encoded bodies may use extra memory: the memory of the cache divided by this.
const ENCODED_MEMORY_DIVISOR: usize = 4;

/// Stored responses in all tiers, and the fetches that requests share.
#[derive(Debug)]
pub struct Cache {
    pub(crate) memory: MemoryStore,
    disk: OnceLock<DiskStore>,
    shared: OnceLock<Arc<dyn SharedTier>>,
    pub(crate) encoded_bodies: Arc<EncodedBodies>,
    pub(crate) coalescer: Arc<Coalescer<CoalesceKey, SharedResponse>>,
    pub(crate) negative: NegativeCache,
    pub(crate) purge_log: PurgeLog,
    pub(crate) purge_observer: Arc<dyn PurgeObserver>,
    site_policy: Policy,
    third_party_policy: Policy,
    pub(crate) limits: BodyLimits,
    max_memory_bytes: u64,
    pub(crate) clock: Clock,
}

/// Limits for bodies on their way into the cache.
#[derive(Debug)]
pub(crate) struct BodyLimits {
    /// The largest stored body.
    pub(crate) max_object_bytes: usize,
    /// Memory for bodies that are recorded to be stored.
    pub(crate) body_memory: Arc<BodyMemory>,
    /// After it, a body is not stored.
    pub(crate) fetch_timeout: Duration,
}

impl Cache {
    /// An empty cache. The limit of a site in memory is the entry of `site_bytes` for its name.
    pub(crate) fn new(
        config: &CacheConfig,
        site_bytes: BTreeMap<String, u64>,
        counters: &Counters,
        purge_observer: Arc<dyn PurgeObserver>,
        clock: Clock,
    ) -> Self {
        let with = |policy| Policy {
            clients_may_revalidate: config.obey_reload,
            ..policy
        };
        let max_memory_bytes = (config.memory_mib << 20) as u64;
        let memory = MemoryStore::new(StoreConfig {
            max_bytes: max_memory_bytes,
            max_object_bytes: (config.object_mib << 20) as u64,
            site_bytes,
            ..StoreConfig::default()
        });
        let body_memory = BodyMemory::new(config.in_flight_mib() << 20, counters.clone());
        let of_codings = (config.memory_mib << 20) / ENCODED_MEMORY_DIVISOR;
        Self {
            memory,
            disk: OnceLock::new(),
            shared: OnceLock::new(),
            encoded_bodies: EncodedBodies::new(of_codings, body_memory.clone()),
            coalescer: Coalescer::new(Duration::from_secs(config.lock_age_s)),
            negative: NegativeCache::default(),
            purge_log: PurgeLog::default(),
            purge_observer,
            site_policy: with(Policy {
                store_after_cookie: config.after_cookies,
                ..Policy::site()
            }),
            third_party_policy: with(Policy {
                // These requests have no client's identity, so their cookies belong to no client.
                set_cookie: SetCookie::Strip,
                ..Policy::third_party()
            }),
            limits: BodyLimits {
                max_object_bytes: config.object_mib << 20,
                body_memory,
                fetch_timeout: Duration::from_secs(config.fetch_timeout_s),
            },
            max_memory_bytes,
            clock,
        }
    }

    /// The limit of the memory tier, in bytes.
    #[must_use]
    pub fn max_memory_bytes(&self) -> u64 {
        self.max_memory_bytes
    }

    /// The counters of the memory tier, and how many bytes and objects are in it.
    #[must_use]
    pub fn usage(&self) -> (StoreCounters, u64, usize) {
        self.memory.counters()
    }

    /// Memory for bodies that are recorded to be stored.
    #[must_use]
    pub fn body_memory(&self) -> &BodyMemory {
        &self.limits.body_memory
    }

    pub(crate) fn policy(&self, kind: OriginKind) -> &Policy {
        match kind {
            OriginKind::Site => &self.site_policy,
            OriginKind::ThirdParty => &self.third_party_policy,
        }
    }

    /// Sets the limits of sites for bytes in memory and on the disk.
    pub(crate) fn set_site_bytes(&self, sites: &Sites) {
        self.memory.set_site_bytes(sites.memory_quotas());
        if let Some(disk) = self.disk() {
            disk.set_site_bytes(sites.disk_quotas());
        }
    }

    /// The stored object for `request` that needs no request to the origin.
    pub(crate) fn lookup_fresh(&self, request: &ProxyRequest) -> Option<Object> {
        let variants = self.memory.lookup(&request.key)?;
        let object = self.select_fresh(&variants, request, self.clock.wall_now());
        object.cloned()
    }

    /// The one of `variants` that `request` gets without a request to the origin.
    pub(crate) fn select_fresh<'a>(
        &self,
        variants: &'a [Object],
        request: &ProxyRequest,
        now: SystemTime,
    ) -> Option<&'a Object> {
        let policy = self.policy(request.origin_kind());
        match lookup::lookup(policy, &request.head, variants, now) {
            Lookup::Fresh { index, .. } => Some(&variants[index]),
            _ => None,
        }
    }

    /// Also stores responses on `disk` from now on, and serves what is there. Only the first call has an effect.
    pub(crate) fn set_disk(&self, disk: DiskStore) {
        if self.disk.set(disk).is_err() {
            tracing::warn!("ignored a second disk tier");
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
            tracing::warn!("ignored a second shared tier");
        }
    }

    /// The tier that is shared with other machines, if there is one.
    #[must_use]
    pub fn shared(&self) -> Option<&dyn SharedTier> {
        self.shared.get().map(|tier| &**tier)
    }

    /// Copies the response for `request` from the disk or the shared tier into memory; `false` if they have none. `record` gets the response
    /// before it is in memory.
    pub(crate) async fn promote(
        &self,
        request: &ProxyRequest,
        record: &(dyn Fn(&Stored) + Sync),
    ) -> bool {
        if let Some(disk) = self.disk.get() {
            let policy = self.policy(request.origin_kind());
            let purges = self.purge_log.now();
            let disk_lookup = pin!(disk.lookup(&request.key, &request.head.headers, policy));
            let timeout = self
                .clock
                .runtime
                .sleep_until(self.clock.runtime.now() + DISK_TIMEOUT);
            let response = match select(disk_lookup, timeout).await {
                Either::Left((response, _)) => response,
                Either::Right(_) => {
                    tracing::debug!("the disk cache does not respond");
                    None
                }
            };
            if let Some((stored, body)) = response {
                record(&stored);
                return self
                    .store_in_memory(&request.key, stored, body, purges)
                    .is_some();
            }
        }
        self.promote_shared(request, None, record).await
    }

    /// Copies the response from the shared tier into memory and disk, if it is newer than `local`.
    async fn promote_shared(
        &self,
        request: &ProxyRequest,
        local: Option<&Stored>,
        record: &(dyn Fn(&Stored) + Sync),
    ) -> bool {
        let Some(shared) = self.shared() else {
            return false;
        };
        let (policy, since) = (self.policy(request.origin_kind()), self.purge_snapshot());
        let response = shared
            .lookup(&request.key, &request.head.headers, policy)
            .await;
        let Some((stored, body)) = response else {
            return false;
        };
        let is_not_newer =
            local.is_some_and(|local| stored.times().received <= local.times().received);
        if is_not_newer || self.purge_log.purged_since(&request.key, since.purges) {
            return false;
        }
        record(&stored);
        self.store_local(&request.key, &Arc::new(stored), body, since.purges)
            .is_some()
    }

    /// Copies the response from the shared tier if it is newer than `local`, and `local` was fresh once and is stale now.
    pub(crate) async fn promote_newer(
        &self,
        request: &ProxyRequest,
        local: Option<&Stored>,
        now: SystemTime,
        record: &(dyn Fn(&Stored) + Sync),
    ) -> bool {
        let is_expired = local.is_some_and(|local| {
            !local.lifetime().duration.is_zero() && local.staleness(now).is_some()
        });
        is_expired && self.promote_shared(request, local, record).await
    }

    /// The state of purges now, for a fetch that begins.
    pub(crate) fn purge_snapshot(&self) -> PurgeSnapshot {
        let mark = self.shared().map(SharedTier::purge_version);
        PurgeSnapshot {
            purges: self.purge_log.now(),
            mark: mark.unwrap_or_default(),
        }
    }

    /// Stores a response in every tier, unless a purge since `since` matched its key.
    pub(crate) fn store(
        &self,
        key: &Key,
        stored: &Arc<Stored>,
        body: CacheBody,
        since: PurgeSnapshot,
    ) -> Option<Object> {
        if self.purge_log.purged_since(key, since.purges) {
            return None;
        }
        if let Some(shared) = self.shared() {
            shared.store(key, stored, &body, since.mark);
        }
        self.store_local(key, stored, body, since.purges)
    }

    /// Stores a response on the disk and in memory.
    fn store_local(
        &self,
        key: &Key,
        stored: &Arc<Stored>,
        body: CacheBody,
        purges: u64,
    ) -> Option<Object> {
        if let Some(disk) = self.disk.get() {
            disk.store(key, stored.clone(), body.clone());
        }
        let object = self.store_in_memory(key, Stored::clone(stored), body, purges);
        if let Some(disk) = self.disk.get()
            && self.purge_log.purged_since(key, purges)
        {
            disk.remove_entry(key, stored);
        }
        object
    }

    /// Stores a response in memory, unless a purge after count `purges` matched its key.
    fn store_in_memory(
        &self,
        key: &Key,
        stored: Stored,
        body: CacheBody,
        purges: u64,
    ) -> Option<Object> {
        let object = self.memory.store(key, stored, body)?;
        // A purge in the meantime may have searched memory before the object was in it.
        if self.purge_log.purged_since(key, purges) {
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
        object.stored().expire(self.clock.wall_now());
    }
}
