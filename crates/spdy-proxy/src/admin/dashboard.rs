//! The numbers of the dashboard: for each site its requests, what the cache saved and its origin; and the pages, the cache and the certificates.
//!
//! Sites come from the configuration only, and pages are limited by `page_reports.rs`, so clients cannot make this longer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use spdy_clock::Instant;

use crate::origin_kind::OriginKind;
use crate::proxy::Proxy;
use crate::sites::site::Site;
use crate::telemetry::counters::CounterFamily;
use crate::telemetry::histogram::Histogram;
use crate::telemetry::page_report::PageSummary;

/// Reads the certificates: the first name of each, and when it expires; `None` if it does not exist yet.
pub type CertificateReader = Arc<dyn Fn() -> Vec<(String, Option<SystemTime>)> + Send + Sync>;

/// The numbers that the dashboard shows. All counts are since the start of the program.
#[derive(Debug, Serialize)]
pub(super) struct Dashboard {
    /// When it was read, as an HTTP date.
    at: String,
    /// Time since the start of the program, s.
    uptime_s: u64,
    sites: Vec<SiteNumbers>,
    /// Responses of origins that are no site's own.
    third_party: OriginNumbers,
    /// Responses and failures of all origins, by outcome (`spdy_accelerator_origin_responses_total`).
    origin_outcomes: BTreeMap<&'static str, u64>,
    pages: Vec<PageSummary>,
    cache: CacheUse,
    certificates: Vec<CertificateExpiry>,
}

/// One configured site.
#[derive(Debug, Serialize)]
struct SiteNumbers {
    /// Its first name.
    name: String,
    /// Its pages are not changed: the rules are only tried (`dry_run`).
    dry_run: bool,
    requests: u64,
    /// Responses by class of the status.
    classes: BTreeMap<&'static str, u64>,
    /// Responses with a body from the cache.
    hits: u64,
    /// Responses with a body from the origin.
    misses: u64,
    /// Bytes of bodies that clients took.
    response_bytes: u64,
    /// Those of them that the origin did not send.
    saved_bytes: u64,
    /// From a request to the head of its response.
    latency: Latency,
    origin: OriginNumbers,
}

/// The responses of one origin, or of several.
#[derive(Debug, Serialize)]
struct OriginNumbers {
    /// Its URL; `None` for several.
    url: Option<String>,
    responses: u64,
    /// Failed requests and 5xx; `None` if they are not counted by origin.
    errors: Option<u64>,
    latency: Latency,
}

/// Estimates from a histogram; `None` without samples.
#[derive(Clone, Copy, Debug, Serialize)]
struct Latency {
    /// Half of all took no longer, ms.
    median_ms: Option<f64>,
    /// 95 % took no longer, ms.
    p95_ms: Option<f64>,
}

#[derive(Debug, Serialize)]
struct CacheUse {
    memory: TierUse,
    disk: Option<TierUse>,
}

/// The use of one tier of the cache.
#[derive(Clone, Copy, Debug, Serialize)]
struct TierUse {
    objects: usize,
    bytes: u64,
    /// The configured limit.
    max_bytes: u64,
    evicted: u64,
}

#[derive(Debug, Serialize)]
struct CertificateExpiry {
    /// The first name in it.
    name: String,
    /// Seconds until it expires, 0 if it has expired; `None` if it does not exist yet.
    left_s: Option<u64>,
}

impl Dashboard {
    /// The numbers of `proxy` now.
    pub(super) fn read(proxy: &Proxy, certificates: Option<&CertificateReader>) -> Self {
        let telemetry = &proxy.telemetry;
        let now = proxy.clock.wall_now();
        let sites = proxy.origins.sites();
        let expiry = |(name, until): (String, Option<SystemTime>)| CertificateExpiry {
            name,
            left_s: until.map(|until| seconds_until(until, now)),
        };
        let certificates = certificates.map(|read| read()).unwrap_or_default();
        let outcomes = telemetry.counters.read(CounterFamily::Origins);
        Self {
            at: httpdate::fmt_http_date(now),
            uptime_s: (proxy.clock.now() - Instant::ZERO).as_secs(),
            sites: sites.all().map(|site| SiteNumbers::of(site)).collect(),
            third_party: OriginNumbers::of(
                None,
                None,
                &telemetry.latency.load(OriginKind::ThirdParty),
            ),
            origin_outcomes: outcomes.into_iter().collect(),
            pages: proxy.pages.reports.list(),
            cache: CacheUse::of(proxy),
            certificates: certificates.into_iter().map(expiry).collect(),
        }
    }
}

impl SiteNumbers {
    fn of(site: &Site) -> Self {
        let counts = site.counters.load();
        let (origin, errors) = (site.origin_url().to_string(), counts.origin_errors);
        Self {
            name: site.name.clone(),
            dry_run: site.rules.is_dry_run(),
            requests: counts.requests(),
            hits: counts.hits,
            misses: counts.misses,
            response_bytes: counts.response_bytes,
            saved_bytes: counts.saved_bytes,
            latency: Latency::of(&counts.latency),
            origin: OriginNumbers::of(Some(origin), Some(errors), &counts.origin_latency),
            classes: counts.classes.into_iter().collect(),
        }
    }
}

impl OriginNumbers {
    fn of(url: Option<String>, errors: Option<u64>, latency: &Histogram) -> Self {
        Self {
            url,
            responses: latency.count(),
            errors,
            latency: Latency::of(latency),
        }
    }
}

impl Latency {
    fn of(histogram: &Histogram) -> Self {
        let ms = |took: Duration| took.as_secs_f64() * 1e3;
        Self {
            median_ms: histogram.quantile(0.5).map(ms),
            p95_ms: histogram.quantile(0.95).map(ms),
        }
    }
}

impl CacheUse {
    fn of(proxy: &Proxy) -> Self {
        let (counters, bytes, objects) = proxy.cache.usage();
        let memory = TierUse {
            objects,
            bytes,
            max_bytes: proxy.cache.max_memory_bytes(),
            evicted: counters.evicted,
        };
        let disk = proxy.cache.disk().map(|disk| {
            let (objects, bytes) = disk.usage();
            let evicted = &disk.counters().evicted;
            TierUse {
                objects,
                bytes,
                max_bytes: disk.max_bytes(),
                evicted: evicted.load(std::sync::atomic::Ordering::Relaxed),
            }
        });
        Self { memory, disk }
    }
}

/// Whole seconds from `now` until `until`; 0 if it is past.
fn seconds_until(until: SystemTime, now: SystemTime) -> u64 {
    until.duration_since(now).map_or(0, |left| left.as_secs())
}
