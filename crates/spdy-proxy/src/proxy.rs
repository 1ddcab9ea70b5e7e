//! The accelerator as a whole: sites, cache, origins and counters. `serve/handle_request.rs` handles its requests.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use http::{HeaderMap, header, request};
use parking_lot::RwLock;
use spdy::runtime::SharedRuntime;
use spdy_cache::memory_store;
use spdy_cache::policy::{Policy, SetCookie};
use spdy_cache::shared_tier::SharedTier;
use spdy_net::handler::RequestInfo;
use spdy_net::listen::trusted_proxies::TrustedProxies;
use spdy_net::wall_clock::WallClock;
use spdy_server::session_history::DigestKey;

use crate::body::body_memory::BodyMemory;
use crate::cache::coalescer::Coalescer;
use crate::cache::disk::store::DiskStore;
use crate::cache::encoded_bodies::EncodedBodies;
use crate::cache::memory_store::MemoryStore;
use crate::cache::negative_cache::NegativeCache;
use crate::cache::purge::PurgeLog;
use crate::cache::shared_response::{CoalesceKey, SharedResponse};
use crate::config::cache::CacheConfig;
use crate::config::learn::LearnConfig;
use crate::fetch::range_fill::RangeFillBackoff;
use crate::fetch::range_fill_credit::RangeFillCredits;
use crate::prefetch::page_resources::PageResources;
use crate::prefetch::prefetcher::Prefetcher;
use crate::request::forgeable_headers::FromTrustedProxy;
use crate::request::forwarded::{self, is_secure};
use crate::request::miss_rate::MissRateLimit;
use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::rewrite_facts::RefetchHistory;
use crate::rewrite::stylesheet_index::StylesheetIndex;
use crate::sites::site_table::{Site, Sites};
use crate::telemetry::counters::Counters;
use crate::telemetry::origin_latency::OriginLatency;
use crate::telemetry::page_reports::PageReports;
use crate::telemetry::spans::{OpenSpan, SpanKind, Spans};
use crate::upstream::client::{OriginKind, Upstream};
use crate::websocket::connection::WebSocketLimit;

/// The name of this cache in `Cache-Status` and `Proxy-Status`.
pub(crate) const CACHE_NAME: &str = "spdy";

/// Encoded bodies may use extra memory: the memory of the cache divided by this.
const ENCODED_MEMORY_DIVISOR: usize = 4;

/// The accelerator.
#[derive(Debug)]
pub struct Proxy {
    sites: RwLock<Arc<Sites>>,
    upstream: RwLock<Arc<Upstream>>,
    pub(crate) memory: MemoryStore,
    pub(crate) disk: OnceLock<DiskStore>,
    pub(crate) shared: OnceLock<Arc<dyn SharedTier>>,
    pub(crate) encodings: Arc<EncodedBodies>,
    pub(crate) resources: PageResources,
    pub(crate) purges: PurgeLog,
    pub(crate) stylesheets: StylesheetIndex,
    pub(crate) refetches: RefetchHistory,
    /// Reports on pages.
    pub reports: PageReports,
    /// What was done so far.
    pub counters: Counters,
    /// How long origins took to answer.
    pub latency: OriginLatency,
    spans: OnceLock<Arc<Spans>>,
    digest_key: OnceLock<DigestKey>,
    pub(crate) learn: LearnConfig,
    pub(crate) coalescer: Arc<Coalescer<CoalesceKey, SharedResponse>>,
    site_policy: Policy,
    third_party_policy: Policy,
    pub(crate) max_object_bytes: usize,
    /// Memory for bodies that are recorded to be stored.
    pub body_memory: Arc<BodyMemory>,
    pub(crate) fetch_timeout: Duration,
    pub(crate) miss_rate: MissRateLimit,
    pub(crate) websockets: WebSocketLimit,
    pub(crate) prefetcher: Prefetcher,
    pub(crate) negative: NegativeCache,
    pub(crate) range_fill_backoff: RangeFillBackoff,
    pub(crate) range_fills: Arc<RangeFillCredits>,
    pub(crate) runtime: SharedRuntime,
    calendar: WallClock,
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
        let with = |policy| Policy {
            clients_may_revalidate: config.obey_reload,
            ..policy
        };
        let memory = MemoryStore::new(memory_store::StoreConfig {
            max_bytes: (config.memory_mib << 20) as u64,
            max_object_bytes: (config.object_mib << 20) as u64,
            site_bytes: sites.memory_quotas(),
            ..store::StoreConfig::default()
        });
        let counters = Counters::default();
        let in_flight = BodyMemory::new(config.in_flight_mib() << 20, counters.clone());
        let of_codings = (config.memory_mib << 20) / ENCODED_MEMORY_DIVISOR;
        Arc::new(Self {
            sites: RwLock::new(Arc::new(sites)),
            upstream: RwLock::new(Arc::new(upstream)),
            memory,
            disk: OnceLock::new(),
            shared: OnceLock::new(),
            encodings: EncodedBodies::new(of_codings, in_flight.clone()),
            resources: PageResources::default(),
            purges: PurgeLog::default(),
            stylesheets: StylesheetIndex::default(),
            refetches: RefetchHistory::default(),
            reports: PageReports::default(),
            body_memory: in_flight,
            counters,
            latency: OriginLatency::default(),
            spans: OnceLock::new(),
            digest_key: OnceLock::new(),
            learn: learn.clone(),
            coalescer: Coalescer::new(Duration::from_secs(config.lock_age_s)),
            site_policy: with(Policy {
                store_after_cookie: config.after_cookies,
                ..Policy::site()
            }),
            third_party_policy: with(Policy {
                // These requests have no client's identity, so their cookies belong to no client.
                set_cookie: SetCookie::Strip,
                ..Policy::third_party()
            }),
            max_object_bytes: config.object_mib << 20,
            fetch_timeout: Duration::from_secs(config.fetch_timeout_s),
            miss_rate: MissRateLimit::new(config.misses_per_second),
            websockets: WebSocketLimit::default(),
            prefetcher: Prefetcher::new(learn),
            negative: NegativeCache::default(),
            range_fill_backoff: RangeFillBackoff::default(),
            range_fills: RangeFillCredits::new(config.range_fill_mib << 20),
            runtime,
            calendar,
        })
    }

    /// Requests that come from now on use `sites` and `upstream`. Pending requests are not affected.
    pub fn replace(&self, sites: Sites, upstream: Upstream) {
        let mut former = self.sites.write();
        sites.copy_state_from(&former);
        self.memory.set_site_bytes(sites.memory_quotas());
        if let Some(disk) = self.disk() {
            disk.set_site_bytes(sites.disk_quotas());
        }
        *former = Arc::new(sites);
        drop(former);
        let mut current = self.upstream.write();
        *current = Arc::new(upstream);
    }

    /// Pages that are rewritten from now on use no alias in `names`, which browsers would refuse, and all other aliases. Gives whether
    /// `names` has changed.
    pub fn withhold_aliases(&self, names: &BTreeSet<String>) -> bool {
        let mut sites = self.sites.write();
        let is_new = sites.withheld() != names;
        if is_new {
            *sites = Arc::new(sites.without_aliases(names));
        }
        is_new
    }

    /// Records requests in `spans` from now on. Only the first call has an effect.
    pub fn set_spans(&self, spans: Spans) {
        let _ = self.spans.set(Arc::new(spans));
    }

    /// Uses `key` for the digests of URLs that connections remember. A program uses a random key. Only the first call has an effect.
    pub fn set_digest_key(&self, key: DigestKey) {
        let _ = self.digest_key.set(key);
    }

    pub(crate) fn digest_key(&self) -> DigestKey {
        self.digest_key.get().copied().unwrap_or_default()
    }

    pub(crate) fn spans(&self) -> Option<&Arc<Spans>> {
        self.spans.get()
    }

    /// The span of rewriting the response to `wanted`.
    pub(crate) fn rewriting_span(&self, wanted: &ProxyRequest) -> Option<OpenSpan> {
        let within = wanted.span_context.as_ref()?;
        let place = self
            .spans()?
            .child_span(within, SpanKind::Internal, "rewrite");
        place.open
    }

    pub(crate) fn upstream(&self) -> Arc<Upstream> {
        let upstream = self.upstream.read();
        upstream.clone()
    }

    /// The counters of the cache, and how many bytes and objects are in it.
    #[must_use]
    pub fn cache(&self) -> (memory_store::StoreCounters, u64, usize) {
        self.memory.counters()
    }

    /// Closes all connections to origins gracefully.
    pub async fn close(&self) {
        self.upstream().close().await;
    }

    pub(crate) fn policy(&self, whose: OriginKind) -> &Policy {
        match whose {
            OriginKind::Site => &self.site_policy,
            OriginKind::ThirdParty => &self.third_party_policy,
        }
    }

    /// Wall-clock time. Without a calendar: 1970 plus the elapsed run time.
    pub(crate) fn wall_now(&self) -> SystemTime {
        let since_start =
            || SystemTime::UNIX_EPOCH + (self.runtime.now() - spdy_clock::Instant::ZERO);
        self.calendar.now(&self.runtime).unwrap_or_else(since_start)
    }

    /// The client's address, where `from` may be a proxy in front. If that proxy is trusted, `asked` is marked as its request, and
    /// `RequestInfo::secure` is set to what the proxy states.
    pub(crate) fn resolve_client(
        &self,
        from: Option<IpAddr>,
        asked: &mut request::Parts,
    ) -> Option<IpAddr> {
        let from = from?;
        let Some(in_front) = self.trusted_proxy(from) else {
            return Some(from);
        };
        let arrival: Option<&mut RequestInfo> = asked.extensions.get_mut();
        if let (Some(arrival), Some(secure)) = (arrival, is_secure(&asked.headers)) {
            arrival.secure = secure;
        }
        asked.extensions.insert(FromTrustedProxy);
        Some(forwarded::client(&in_front, from, &asked.headers))
    }

    /// The client that sent `headers`, where `from` may be a proxy in front.
    pub(crate) fn client_of_malformed(&self, from: IpAddr, headers: &HeaderMap) -> IpAddr {
        let in_front = self.trusted_proxy(from);
        in_front.map_or(from, |in_front| forwarded::client(&in_front, from, headers))
    }

    /// The trusted proxies, if `from` is one of them and forwards the client's address with each request.
    fn trusted_proxy(&self, from: IpAddr) -> Option<Arc<TrustedProxies>> {
        let sites = self.sites.read();
        let in_front = sites.trusted_proxies();
        in_front.forwards_requests(from).then(|| in_front.clone())
    }

    /// The site that `asked` is for.
    pub(crate) fn site_for(&self, asked: &request::Parts) -> Option<Arc<Site>> {
        self.site_named(request_authority(asked)?)
    }

    fn site_named(&self, authority: &str) -> Option<Arc<Site>> {
        let sites = self.sites.read();
        sites.find(authority).cloned()
    }

    pub(crate) fn site_or_alias(&self, authority: &str) -> Option<Arc<Site>> {
        let sites = self.sites.read();
        sites.find_with_aliases(authority).cloned()
    }

    /// The current sites.
    #[must_use]
    pub fn sites(&self) -> Arc<Sites> {
        let sites = self.sites.read();
        sites.clone()
    }
}

/// The host that a client named, with its port.
pub(crate) fn request_authority(asked: &request::Parts) -> Option<&str> {
    match asked.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => asked.headers.get(header::HOST)?.to_str().ok(),
    }
}
