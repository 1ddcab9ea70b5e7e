//! The accelerator as a whole: its parts, put together. `serve/handle_request.rs` handles its requests.

use std::sync::{Arc, OnceLock};

use spdy::runtime::SharedRuntime;
use spdy_net::wall_clock::WallClock;
use spdy_server::session_history::DigestKey;

use crate::cache::disk::store::DiskStore;
use crate::cache::purge::{PurgeCount, PurgeRequest};
use crate::cache::recompressor::RecompressedKinds;
use crate::cache::tiers::Cache;
use crate::clock::Clock;
use crate::config::cache::CacheConfig;
use crate::config::learn::LearnConfig;
use crate::fetch::client_limits::ClientLimits;
use crate::fetch::context::FetchContext;
use crate::images::convert::ImageConversion;
use crate::prefetch::history::PrefetchHistory;
use crate::prefetch::prefetcher::Prefetcher;
use crate::request::password_checks::PasswordChecks;
use crate::rewrite::pages::Pages;
use crate::sites::site_table::Sites;
use crate::telemetry::recorders::Telemetry;
use crate::upstream::client::Upstream;
use crate::upstream::origins::Origins;

/// The accelerator.
#[derive(Debug)]
pub struct Proxy {
    /// The sites, and how their origins are contacted.
    pub origins: Arc<Origins>,
    /// Stored responses, and the fetches that requests share.
    pub cache: Arc<Cache>,
    /// Results of rewriting, and reports on them.
    pub pages: Arc<Pages>,
    /// Fetches what pages refer to, and remembers the resources of pages.
    pub(crate) prefetcher: Arc<Prefetcher>,
    /// Limits of the work that one client may cause.
    pub client_limits: Arc<ClientLimits>,
    /// The checks of clients' passwords.
    pub(crate) password_checks: PasswordChecks,
    /// Counters, latencies and spans.
    pub telemetry: Arc<Telemetry>,
    /// Options of pushes and hints.
    pub push_config: PushConfig,
    pub(crate) clock: Clock,
    /// The same parts, for a fetch, which outlives its request.
    pub(crate) fetch_context: Arc<FetchContext>,
}

/// Options of pushes and hints.
#[derive(Debug)]
pub struct PushConfig {
    /// Resources are pushed over SPDY.
    pub(crate) push: bool,
    /// Hints are sent by 103.
    pub(crate) early_hints: bool,
    digest_key: OnceLock<DigestKey>,
}

impl PushConfig {
    fn new(learn: &LearnConfig) -> Self {
        Self {
            push: learn.push,
            early_hints: learn.early_hints,
            digest_key: OnceLock::new(),
        }
    }

    /// Uses `key` for the digests of URLs that connections remember. A program uses a random key. Only the first call has an effect.
    pub fn set_digest_key(&self, key: DigestKey) {
        let _ = self.digest_key.set(key);
    }

    pub(crate) fn digest_key(&self) -> DigestKey {
        self.digest_key.get().copied().unwrap_or_default()
    }
}

impl Proxy {
    /// Serves `sites` and contacts their origins through `upstream`.
    #[must_use]
    pub fn new(
        sites: Sites,
        upstream: Upstream,
        config: &CacheConfig,
        learn: &LearnConfig,
        runtime: SharedRuntime,
        calendar: WallClock,
    ) -> Arc<Self> {
        let clock = Clock::new(runtime, calendar);
        let telemetry = Arc::new(Telemetry::default());
        let history = Arc::new(PrefetchHistory::new());
        let prefetcher = Arc::new(Prefetcher::new(learn, history.clone()));
        let cache = Arc::new(Cache::new(
            config,
            sites.memory_quotas(),
            &telemetry.counters,
            history,
            clock.clone(),
        ));
        let origins = Arc::new(Origins::new(sites, upstream));
        let pages = Arc::new(Pages::default());
        let client_limits = Arc::new(ClientLimits::new(config));
        let fetch_context = Arc::new(FetchContext {
            origins: origins.clone(),
            cache: cache.clone(),
            pages: pages.clone(),
            client_limits: client_limits.clone(),
            telemetry: telemetry.clone(),
            observer: prefetcher.clone(),
            clock: clock.clone(),
        });
        Arc::new(Self {
            origins,
            cache,
            pages,
            prefetcher,
            client_limits,
            password_checks: PasswordChecks::default(),
            telemetry,
            push_config: PushConfig::new(learn),
            clock,
            fetch_context,
        })
    }

    /// Requests that come from now on use `sites` and `upstream`. Pending requests are not affected.
    pub fn replace(&self, sites: Sites, upstream: Upstream) {
        self.origins
            .replace(sites, upstream, |sites| self.cache.set_site_bytes(sites));
    }

    /// Also stores responses on `disk` from now on, and serves what is there. Only the first call has an effect.
    pub fn set_disk(&self, disk: DiskStore) {
        disk.set_site_bytes(self.origins.sites().disk_quotas());
        self.cache.set_disk(disk);
    }

    /// Makes stored `texts` and `images` that are requested again smaller, in a separate thread, from now on.
    ///
    /// # Errors
    ///
    /// The thread cannot be started.
    pub fn start_recompression(&self, texts: bool, images: ImageConversion) -> std::io::Result<()> {
        let kinds = RecompressedKinds { texts, images };
        self.cache.encoded_bodies.start_recompression(kinds)
    }

    /// Purges what the operator requests.
    ///
    /// # Errors
    ///
    /// What is wrong with the request.
    pub fn purge(&self, wish: &PurgeRequest) -> Result<PurgeCount, String> {
        self.cache.purge(&self.origins.sites(), wish)
    }
}
