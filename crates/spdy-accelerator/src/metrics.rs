//! The metrics of `spdy accelerate`, in addition to those of `spdy serve`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, UNIX_EPOCH};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use spdy::metrics::Metrics;
use spdy_acme::certificates::Certificates;
use spdy_dns::serve::StatsReader;
use spdy_net::limit::LimitHits;
use spdy_proxy::origin_kind::OriginKind;
use spdy_proxy::proxy::Proxy;
use spdy_proxy::telemetry::counters::CounterFamily;
use spdy_proxy::telemetry::histogram::Histogram;
use spdy_proxy::telemetry::origin_latency::OriginLatency;
use spdy_proxy::telemetry::site_counters::SiteSnapshot;
use spdy_resolver::guarded_network::RefusalCounts;
use spdy_resolver::spoof_budget::{Mismatch, MismatchedReplies};
use spdy_service::metrics::{self, counter, gauge, put, put_gauge};
use spdy_valkey::tier::Tier;

use super::access_log::lines::Lines;
use super::origins::upstream::OriginCounters;
use super::telemetry::Queue;

/// Collects the metrics of an accelerator.
#[derive(Debug)]
pub(crate) struct AcceleratorCollector {
    pub(crate) proxy: Arc<Proxy>,
    /// Counters of origins' names and addresses.
    pub(crate) origin_counters: OriginCounters,
    /// Counters of the DNS server, if there is one.
    pub(crate) names: Option<StatsReader>,
    /// The tier that is shared with other machines, if there is one.
    pub(crate) shared: Option<Arc<Tier>>,
    pub(crate) certificates: Certificates,
    /// The queue of spans to send, if spans are made.
    pub(crate) spans: Option<Arc<Queue>>,
    /// The lines of the access log.
    pub(crate) log_lines: Arc<Lines>,
}

/// A registry of the metrics in `shown`, of the sessions and of the listeners.
pub(crate) fn registry(
    shown: AcceleratorCollector,
    metrics: &Metrics,
    hits: &LimitHits,
) -> Arc<Registry> {
    let mut registry = metrics::registry(metrics, hits);
    let added = Arc::get_mut(&mut registry).expect("a new Arc has one owner");
    added.register_collector(Box::new(shown));
    registry
}

impl Collector for AcceleratorCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in CounterFamily::ALL {
            let (name, label, help) = family.describe();
            let mut metric = counter(&mut encoder, name, help)?;
            for (value, count) in self.proxy.telemetry.counters.read(family) {
                put(&mut metric, &[(label, value)], count)?;
            }
        }
        let help = "Open WebSockets";
        let mut open = gauge(&mut encoder, "accelerator_websockets_open", help)?;
        open.encode_gauge(&(self.proxy.client_limits.open_websockets() as u64))?;
        let upstream = self.proxy.origins.upstream();
        let help = "0 for a server of a site that failed its checks and gets no requests, else 1";
        let mut available = gauge(&mut encoder, "accelerator_server_available", help)?;
        for (site, server, is_available) in upstream.servers() {
            let labels = [("site", site), ("server", server)];
            put_gauge(&mut available, &labels, u64::from(is_available))?;
        }
        encode_refusals(&self.origin_counters.refusals, &mut encoder)?;
        encode_unwanted_replies(&self.origin_counters.unwanted, &mut encoder)?;
        if let Some(names) = &self.names {
            encode_dns(names, &mut encoder)?;
        }
        encode_latency(&self.proxy.telemetry.latency, &mut encoder)?;
        encode_sites(&self.proxy, &mut encoder)?;
        let (counters, bytes, objects) = self.proxy.cache.usage();
        let all = [
            ("inserted", counters.inserted),
            ("replaced", counters.replaced),
            ("evicted", counters.evicted),
            ("purged", counters.purged),
            ("rejected", counters.refused),
        ];
        let mut metric = counter(
            &mut encoder,
            "cache_memory_objects",
            "Objects of the memory tier, by event",
        )?;
        for (what, count) in all {
            put(&mut metric, &[("event", what)], count)?;
        }
        let disk = self
            .proxy
            .cache
            .disk()
            .map(|disk| (disk.usage(), disk.counters()));
        if let Some((_, counters)) = &disk {
            let all = [
                ("hit", &counters.hits),
                ("written", &counters.written),
                ("write-skipped", &counters.write_skipped),
                ("corrupt", &counters.corrupt),
                ("evicted", &counters.evicted),
            ];
            let help = "Objects of the disk tier, by event";
            let mut metric = counter(&mut encoder, "cache_disk_objects", help)?;
            for (what, count) in all {
                put(
                    &mut metric,
                    &[("event", what)],
                    count.load(Ordering::Relaxed),
                )?;
            }
        }
        if let Some(shared) = &self.shared {
            encode_shared_tier(shared, &mut encoder)?;
        }
        encode_certificates(&self.certificates, &mut encoder)?;
        if let Some(spans) = &self.spans {
            encode_spans(spans, &mut encoder)?;
        }
        encode_access_log(&self.log_lines, &mut encoder)?;
        let mut held = gauge(&mut encoder, "cache_stored_bytes", "Stored bytes")?;
        put_gauge(&mut held, &[("tier", "memory")], bytes)?;
        if let Some(((_, bytes), _)) = disk {
            put_gauge(&mut held, &[("tier", "disk")], bytes)?;
        }
        let mut held = gauge(&mut encoder, "cache_stored_objects", "Stored objects")?;
        put_gauge(&mut held, &[("tier", "memory")], objects as u64)?;
        if let Some(((objects, _), _)) = disk {
            put_gauge(&mut held, &[("tier", "disk")], objects as u64)?;
        }
        let help = "Bytes of responses that are about to be stored";
        let mut in_flight = gauge(&mut encoder, "cache_in_flight_bytes", help)?;
        in_flight.encode_gauge(&(self.proxy.cache.body_memory().bytes() as u64))?;
        Ok(())
    }
}

/// Encodes refused hosts and addresses of origins.
fn encode_refusals(refusals: &RefusalCounts, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Hosts and addresses of origins to which no connection is allowed, by reason";
    let mut metric = counter(encoder, "accelerator_rejected_addresses", help)?;
    for (reason, count) in refusals.by_reason() {
        put(&mut metric, &[("reason", reason)], count)?;
    }
    Ok(())
}

/// Encodes replies that match none of the resolver's questions.
fn encode_unwanted_replies(
    unwanted: &MismatchedReplies,
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    let help = "DNS responses that do not match a query of the resolver, by the first mismatch";
    let mut metric = counter(encoder, "dns_mismatched_responses", help)?;
    for mismatch in Mismatch::ALL {
        put(
            &mut metric,
            &[("mismatch", mismatch.name())],
            unwanted.of(mismatch),
        )?;
    }
    let help = "Lookups that continued over TCP only, after too many mismatched responses";
    let mut metric = counter(encoder, "dns_tcp_only_lookups", help)?;
    metric.encode_counter::<NoLabelSet, _, u64>(&unwanted.switched_to_tcp(), None)
}

/// Encodes questions to the name server.
fn encode_dns(names: &StatsReader, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let stats = names.stats();
    let help = "Queries to the name server, by outcome";
    let mut metric = counter(encoder, "dns_queries", help)?;
    for (outcome, count) in stats.by_outcome() {
        put(&mut metric, &[("outcome", outcome)], count)?;
    }
    let help = "Responses of the name server that did not fit in a datagram";
    let mut metric = counter(encoder, "dns_truncated_responses", help)?;
    metric.encode_counter::<NoLabelSet, _, u64>(&stats.truncated, None)
}

/// Encodes the response times of origins.
fn encode_latency(latency: &OriginLatency, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Time from the request to an origin to the head of its response";
    let name = "accelerator_origin_response_seconds";
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (kind, label) in [
        (OriginKind::Site, "site"),
        (OriginKind::ThirdParty, "third-party"),
    ] {
        put_histogram(&mut metric, &[("kind", label)], &latency.load(kind))?;
    }
    Ok(())
}

/// Adds one histogram.
fn put_histogram(
    metric: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    histogram: &Histogram,
) -> fmt::Result {
    let bounds = histogram.bounds.iter().map(Duration::as_secs_f64);
    let bounds = bounds.chain([f64::INFINITY]);
    let buckets: Vec<_> = bounds.zip(histogram.buckets.iter().copied()).collect();
    let (sum, count) = (histogram.sum.as_secs_f64(), histogram.count());
    metric
        .encode_family(labels)?
        .encode_histogram::<NoLabelSet>(sum, count, &buckets, None)
}

/// Encodes the counters of each configured site, by its first name.
fn encode_sites(proxy: &Proxy, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let sites = proxy.origins.sites();
    let sites: Vec<(&str, SiteSnapshot)> = sites
        .all()
        .map(|site| (site.name.as_str(), site.counters.load()))
        .collect();
    let help = "Responses to the requests for a site, by class of the status";
    let mut metric = counter(encoder, "accelerator_site_requests", help)?;
    for (site, counts) in &sites {
        for (class, count) in &counts.classes {
            put(&mut metric, &[("site", *site), ("class", *class)], *count)?;
        }
    }
    let help = "Responses with a body from the cache (hit) or from the origin (miss)";
    let mut metric = counter(encoder, "accelerator_site_cache_lookups", help)?;
    for (site, counts) in &sites {
        for (result, count) in [("hit", counts.hits), ("miss", counts.misses)] {
            put(&mut metric, &[("site", *site), ("result", result)], count)?;
        }
    }
    let mut put_totals = |name: &str, help: &str, total: fn(&SiteSnapshot) -> u64| {
        let mut metric = counter(encoder, name, help)?;
        let mut counts = sites.iter();
        counts.try_for_each(|(site, counts)| put(&mut metric, &[("site", *site)], total(counts)))
    };
    put_totals(
        "accelerator_site_response_bytes",
        "Bytes of response bodies that clients of a site took",
        |counts| counts.response_bytes,
    )?;
    put_totals(
        "accelerator_site_saved_bytes",
        "Bytes of response bodies that the origin did not send, because the cache had them",
        |counts| counts.saved_bytes,
    )?;
    put_totals(
        "accelerator_site_origin_errors",
        "Failed requests to a site's own origin, and its responses with a status from 500 to 599",
        |counts| counts.origin_errors,
    )?;
    let help = "Time from a client's request to the head of its response";
    let name = "accelerator_site_response_seconds";
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (site, counts) in &sites {
        put_histogram(&mut metric, &[("site", *site)], &counts.latency)?;
    }
    Ok(())
}

/// Encodes certificates by ACME and from files; nothing without certificates.
fn encode_certificates(
    certificates: &Certificates,
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    let expiries = certificates.expiries();
    if expiries.is_empty() {
        return Ok(());
    }
    let help =
        "Expiry of each certificate in seconds since 1970, 0 until ACME has issued the first";
    let mut metric = gauge(encoder, "certificate_expiry_timestamp_seconds", help)?;
    for (name, until) in &expiries {
        let since = until.and_then(|until| until.duration_since(UNIX_EPOCH).ok());
        let since = since.map_or(0, |since| since.as_secs());
        put_gauge(&mut metric, &[("name", name.as_str())], since)?;
    }
    let help = "Pairs of certificate files that were invalid when they were last read; the previous certificate is used";
    let mut metric = gauge(encoder, "certificate_invalid_files", help)?;
    metric.encode_gauge(&(certificates.stale_count() as u64))?;
    let orders = &certificates.orders;
    let all = [("issued", &orders.issued), ("failed", &orders.failed)];
    let help = "ACME orders of certificates, by outcome";
    let mut metric = counter(encoder, "certificate_orders", help)?;
    for (outcome, count) in all {
        let count = count.load(Ordering::Relaxed);
        put(&mut metric, &[("outcome", outcome)], count)?;
    }
    Ok(())
}

/// Encodes the outcome of spans.
fn encode_spans(spans: &Queue, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counts = &spans.counts;
    let all = [
        ("sent", &counts.sent),
        ("dropped", &counts.dropped),
        ("rejected", &counts.refused),
        ("timeout", &counts.unsent),
    ];
    let help = "Spans, by outcome";
    let mut metric = counter(encoder, "telemetry_spans", help)?;
    for (outcome, count) in all {
        let count = count.load(Ordering::Relaxed);
        put(&mut metric, &[("outcome", outcome)], count)?;
    }
    Ok(())
}

/// Encodes the outcome of lines of the access log.
fn encode_access_log(lines: &Lines, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counts = &lines.counts;
    let help = "Lines for the file of the access log, by outcome";
    let mut metric = counter(encoder, "access_log_lines", help)?;
    for (outcome, count) in [("written", &counts.written), ("dropped", &counts.dropped)] {
        let count = count.load(Ordering::Relaxed);
        put(&mut metric, &[("outcome", outcome)], count)?;
    }
    let help = "Failed attempts to open or write the file of the access log";
    let mut metric = counter(encoder, "access_log_errors", help)?;
    let errors = counts.errors.load(Ordering::Relaxed);
    metric.encode_counter::<NoLabelSet, _, u64>(&errors, None)
}

/// Encodes the counters of the shared tier.
fn encode_shared_tier(shared: &Tier, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counters = shared.counters();
    let all = [
        ("hit", &counters.hits),
        ("miss", &counters.misses),
        ("purged", &counters.purged),
        ("corrupt", &counters.broken),
        ("unreachable", &counters.unanswered),
        ("written", &counters.written),
        ("write-skipped", &counters.unwritten),
    ];
    let help = "Objects of the shared tier, by event";
    let mut metric = counter(encoder, "cache_shared_objects", help)?;
    for (what, count) in all {
        let count = count.load(Ordering::Relaxed);
        put(&mut metric, &[("event", what)], count)?;
    }
    let help = "Sixteenths of the cluster's slots, by whether they respond";
    let mut metric = gauge(encoder, "cache_shared_parts", help)?;
    let (available, backoff) = shared.parts();
    put_gauge(&mut metric, &[("state", "available")], available as u64)?;
    put_gauge(&mut metric, &[("state", "backoff")], backoff as u64)
}
