//! What `spdy accelerate` tells Prometheus, beside what `spdy serve` does.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::UNIX_EPOCH;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::registry::Registry;
use spdy::metrics::Metrics;
use spdy_acme::certificates::Certificates;
use spdy_net::limit::LimitHits;
use spdy_proxy::counters::Family;
use spdy_proxy::proxy::Proxy;
use spdy_valkey::tier::Tier;

use crate::commands::accelerate_shared::Shared;
use crate::commands::serve_metrics::{self, counter, gauge, put, put_gauge};
use crate::commands::telemetry::{Queue, Telemetry};

/// A registry of what the accelerator, its sessions and its listeners count.
pub(super) fn registry(
    proxy: &Arc<Proxy>,
    shared: Option<&Shared>,
    certificates: &Certificates,
    metrics: &Metrics,
    hits: &LimitHits,
    telemetry: Option<&Telemetry>,
) -> Arc<Registry> {
    let mut registry = serve_metrics::registry(metrics, hits);
    let added = Arc::get_mut(&mut registry).expect("it was just made");
    added.register_collector(Box::new(OfProxy {
        proxy: proxy.clone(),
        shared: shared.map(|shared| shared.tier.clone()),
        certificates: certificates.clone(),
        spans: telemetry.map(|telemetry| telemetry.queue.clone()),
    }));
    registry
}

#[derive(Debug)]
struct OfProxy {
    proxy: Arc<Proxy>,
    shared: Option<Arc<Tier>>,
    certificates: Certificates,
    spans: Option<Arc<Queue>>,
}

impl Collector for OfProxy {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in Family::ALL {
            let (name, label, help) = family.describe();
            let mut metric = counter(&mut encoder, name, help)?;
            for (value, count) in self.proxy.counters.of(family) {
                put(&mut metric, &[(label, value)], count)?;
            }
        }
        let help = "WebSockets that are open";
        let mut open = gauge(&mut encoder, "accelerator_websockets_open", help)?;
        open.encode_gauge(&(self.proxy.sockets_open() as u64))?;
        let (counters, bytes, objects) = self.proxy.cache();
        let all = [
            ("inserted", counters.inserted),
            ("replaced", counters.replaced),
            ("evicted", counters.evicted),
            ("purged", counters.purged),
            ("refused", counters.refused),
        ];
        let mut metric = counter(
            &mut encoder,
            "cache_objects",
            "Objects by what became of them",
        )?;
        for (what, count) in all {
            put(&mut metric, &[("event", what)], count)?;
        }
        let disk = self.proxy.disk().map(|disk| (disk.held(), disk.counters()));
        if let Some((_, counters)) = &disk {
            let all = [
                ("hits", &counters.hits),
                ("written", &counters.written),
                ("unwritten", &counters.unwritten),
                ("broken", &counters.broken),
                ("evicted", &counters.evicted),
            ];
            let help = "Objects of the tier on a disk by what became of them";
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
            of_shared(shared, &mut encoder)?;
        }
        of_certificates(&self.certificates, &mut encoder)?;
        if let Some(spans) = &self.spans {
            of_spans(spans, &mut encoder)?;
        }
        let mut held = gauge(
            &mut encoder,
            "cache_held_bytes",
            "Bytes of all that is kept",
        )?;
        put_gauge(&mut held, &[("tier", "memory")], bytes)?;
        if let Some(((_, bytes), _)) = disk {
            put_gauge(&mut held, &[("tier", "disk")], bytes)?;
        }
        let mut held = gauge(&mut encoder, "cache_held_objects", "Objects that are kept")?;
        put_gauge(&mut held, &[("tier", "memory")], objects as u64)?;
        if let Some(((objects, _), _)) = disk {
            put_gauge(&mut held, &[("tier", "disk")], objects as u64)?;
        }
        Ok(())
    }
}

/// Certificates by ACME and out of a file; nothing where there are none.
fn of_certificates(
    certificates: &Certificates,
    encoder: &mut DescriptorEncoder<'_>,
) -> fmt::Result {
    let expiries = certificates.expiries();
    if expiries.is_empty() {
        return Ok(());
    }
    let help = "When certificates end, in seconds since 1970, 0 where none has come yet by ACME";
    let mut metric = gauge(encoder, "certificate_expiry_timestamp_seconds", help)?;
    for (name, until) in &expiries {
        let since = until.and_then(|until| until.duration_since(UNIX_EPOCH).ok());
        let since = since.map_or(0, |since| since.as_secs());
        put_gauge(&mut metric, &[("name", name.as_str())], since)?;
    }
    let orders = &certificates.orders;
    let all = [("issued", &orders.issued), ("failed", &orders.failed)];
    let help = "Orders of certificates by ACME by what became of them";
    let mut metric = counter(encoder, "certificate_orders", help)?;
    for (outcome, count) in all {
        let count = count.load(Ordering::Relaxed);
        put(&mut metric, &[("outcome", outcome)], count)?;
    }
    Ok(())
}

/// Spans that are over; nothing where none are made.
fn of_spans(spans: &Queue, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counts = &spans.counts;
    let all = [
        ("sent", &counts.sent),
        ("dropped", &counts.dropped),
        ("refused", &counts.refused),
        ("unsent", &counts.unsent),
    ];
    let help = "Spans by what became of them";
    let mut metric = counter(encoder, "telemetry_spans", help)?;
    for (outcome, count) in all {
        let count = count.load(Ordering::Relaxed);
        put(&mut metric, &[("outcome", outcome)], count)?;
    }
    Ok(())
}

/// What the tier that is shared with other machines counts.
fn of_shared(shared: &Tier, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let counters = shared.counters();
    let all = [
        ("hits", &counters.hits),
        ("misses", &counters.misses),
        ("purged", &counters.purged),
        ("broken", &counters.broken),
        ("unanswered", &counters.unanswered),
        ("written", &counters.written),
        ("unwritten", &counters.unwritten),
    ];
    let help = "Objects of the shared tier by what became of them";
    let mut metric = counter(encoder, "cache_shared_objects", help)?;
    for (what, count) in all {
        let count = count.load(Ordering::Relaxed);
        put(&mut metric, &[("event", what)], count)?;
    }
    let help = "Parts of the shared tier by whether they answer";
    let mut metric = gauge(encoder, "cache_shared_parts", help)?;
    let (answering, resting) = shared.parts();
    put_gauge(&mut metric, &[("state", "answering")], answering as u64)?;
    put_gauge(&mut metric, &[("state", "resting")], resting as u64)
}
