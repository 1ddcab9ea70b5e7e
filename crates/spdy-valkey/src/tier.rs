//! The tier, which implements the cache's [`SharedTier`].

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::HeaderMap;
use spdy_cache::body::Body;
use spdy_cache::key::Key;
use spdy_cache::policy::Policy;
use spdy_cache::shared_tier::{PurgeListener, PurgeTarget, PurgeVersion, SharedTier, TierFuture};
use spdy_cache::stored::Stored;
use tokio::task::JoinHandle;

use crate::config::{Config, ConfigError};
use crate::counters::Counters;
use crate::purge_entry::PurgeEvent;
use crate::tier_state::TierState;
use crate::write_queues::{StoreJob, WriteQueues};
use crate::{cluster_store, part_health, sync_task, write_task};

/// How long a purge waits to be written before it fails.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(1);

/// A cache's tier on a cluster. It ends when this value is dropped.
pub struct Tier {
    inner: Arc<TierState>,
    tasks: Vec<JoinHandle<()>>,
}

impl fmt::Debug for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tier")
            .field("config", &self.inner.config)
            .finish_non_exhaustive()
    }
}

impl Tier {
    /// Starts discovering the cluster, which need not be up yet. `listener` receives the purges of other caches after
    /// `last_version`: the earlier [`log_position`](Self::log_position) if the cache has a disk that outlives the
    /// program, otherwise the default. Must be called in a tokio runtime.
    ///
    /// # Errors
    ///
    /// [`ConfigError`].
    pub fn start(
        config: Config,
        last_version: PurgeVersion,
        listener: PurgeListener,
    ) -> Result<Self, ConfigError> {
        let (queues, receivers) = WriteQueues::new();
        let inner = Arc::new(TierState::new(config, queues, last_version, listener)?);
        let queues = receivers
            .into_iter()
            .map(|queue| tokio::spawn(write_task::run(inner.clone(), queue)));
        let mut tasks: Vec<_> = queues.collect();
        tasks.push(tokio::spawn(sync_task::run(inner.clone())));
        Ok(Self { inner, tasks })
    }

    /// Waits until it is known if the cluster answers.
    pub async fn started(&self) {
        let mut begun = self.inner.started.subscribe();
        // An error means that the sync task was ended.
        let _ = begun.wait_for(|begun| *begun).await;
    }

    /// Waits until all queued writes are done or dropped.
    pub async fn flushed(&self) {
        self.inner.write_queues.flushed().await;
    }

    /// The position in the purge log up to which purges were delivered.
    #[must_use]
    pub fn log_position(&self) -> PurgeVersion {
        self.inner.log_position()
    }

    /// The counters so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Number of available and of unavailable parts of the cluster's slots.
    #[must_use]
    pub fn parts(&self) -> (usize, usize) {
        let answering = self.inner.available_parts();
        (answering, part_health::PARTS - answering)
    }
}

impl Config {
    /// Checks the configuration as [`Tier::start`](crate::tier::Tier::start) does, without a connection.
    ///
    /// # Errors
    ///
    /// [`ConfigError`].
    pub fn check(&self) -> Result<(), ConfigError> {
        self.names()?;
        cluster_store::client(self).map(drop)
    }
}

impl Drop for Tier {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

impl SharedTier for Tier {
    fn lookup<'a>(
        &'a self,
        key: &'a Key,
        request_headers: &'a HeaderMap,
        policy: &'a Policy,
    ) -> TierFuture<'a, Option<(Stored, Body)>> {
        Box::pin(self.inner.find(key, request_headers, policy))
    }

    fn purge_version(&self) -> PurgeVersion {
        self.inner.purge_version()
    }

    fn store(&self, key: &Key, stored: &Arc<Stored>, body: &Body, since: PurgeVersion) {
        let inner = &self.inner;
        if body.len() > inner.config.max_object_bytes {
            return;
        }
        let place = inner.names.place(key.url());
        let build_job = |seq| StoreJob {
            key: key.clone(),
            stored: stored.clone(),
            body: body.clone(),
            since,
            seq,
        };
        if !inner.answers(place.part) || !inner.queue_store(&place, build_job) {
            inner.counters.unwritten.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn remove(&self, url: &[u8]) {
        self.inner.queue_delete(&self.inner.names.place(url));
    }

    fn purge(&self, target: PurgeTarget, soft: bool) {
        self.inner.purge(PurgeEvent::Purge { target, soft });
    }

    fn flush_purges(&self) -> TierFuture<'_, bool> {
        Box::pin(async {
            let all = self.inner.purges();
            let mut published = self.inner.published.subscribe();
            if !self.inner.answers(self.inner.log_part()) {
                return *published.borrow() >= all;
            }
            let published = published.wait_for(|published| *published >= all);
            let timeout = PUBLISH_TIMEOUT.max(self.inner.config.timeout);
            matches!(tokio::time::timeout(timeout, published).await, Ok(Ok(_)))
        })
    }
}
