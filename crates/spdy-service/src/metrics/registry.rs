//! The metrics of sessions and connections: the counters of [`spdy::metrics`], and limits that clients reached. Names and labels are in
//! `docs/reference/metrics.md`.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use spdy::metrics::{Metrics, RTT_BOUNDS_MS, RoleMetrics, RoundTrips};
use spdy_net::limit::{ConnectionLimit, LimitHits};

use super::encode::{counter, gauge, put, put_gauge};

/// A registry of the metrics in `metrics` and `hits`.
#[must_use]
pub fn registry(metrics: &Metrics, hits: &LimitHits) -> Arc<Registry> {
    let mut registry = Registry::with_prefix("spdy");
    registry.register_collector(Box::new(SessionCollector(metrics.clone())));
    registry.register_collector(Box::new(ConnectionCollector(hits.clone())));
    Arc::new(registry)
}

/// Collects the metrics of all sessions on each request.
#[derive(Debug)]
struct SessionCollector(Metrics);

/// Collects the connection limits that clients of any protocol reached.
#[derive(Debug)]
struct ConnectionCollector(LimitHits);

impl Collector for ConnectionCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Connection limits that clients reached";
        let mut limits = counter(&mut encoder, "connection_limit_hits", help)?;
        for limit in ConnectionLimit::ALL {
            put(&mut limits, &[("limit", limit.name())], self.0.of(limit))?;
        }
        Ok(())
    }
}

/// The name of a role, and the metrics of its sessions.
type RoleStats<'a> = (&'static str, &'a RoleMetrics);

impl Collector for SessionCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let snapshot = self.0.snapshot();
        // A role that never had a session would fill the page with zeros.
        let all = [("client", &snapshot.client), ("server", &snapshot.server)];
        let has_been =
            |side: &RoleMetrics| side.sessions.iter().any(|(_, sessions)| sessions.total > 0);
        let sides: Vec<_> = all.into_iter().filter(|(_, side)| has_been(side)).collect();
        sessions(&mut encoder, &sides)?;
        streams(&mut encoder, &sides)?;
        bytes_and_frames(&mut encoder, &sides)?;
        resets_and_limits(&mut encoder, &sides)?;
        round_trips(&mut encoder, &sides)
    }
}

fn sessions(encoder: &mut DescriptorEncoder<'_>, sides: &[RoleStats<'_>]) -> fmt::Result {
    let mut open = gauge(encoder, "sessions_open", "Open sessions")?;
    for (role, side) in sides {
        for (version, sessions) in side.sessions {
            let labels = [("role", *role), ("version", number(version))];
            put_gauge(&mut open, &labels, sessions.open)?;
        }
    }
    let mut total = counter(encoder, "sessions", "Sessions so far")?;
    for (role, side) in sides {
        for (version, sessions) in side.sessions {
            let labels = [("role", *role), ("version", number(version))];
            put(&mut total, &labels, sessions.total)?;
        }
    }
    Ok(())
}

fn number(version: spdy::Version) -> &'static str {
    match version {
        spdy::Version::V2 => "2",
        spdy::Version::V3 => "3",
        spdy::Version::V31 => "3.1",
    }
}

fn streams(encoder: &mut DescriptorEncoder<'_>, sides: &[RoleStats<'_>]) -> fmt::Result {
    let mut open = gauge(encoder, "streams_open", "Open streams")?;
    for (role, side) in sides {
        put_gauge(&mut open, &[("role", *role)], side.streams_open)?;
    }
    let mut total = counter(encoder, "streams", "Streams so far")?;
    for (role, side) in sides {
        let stats = &side.stats;
        let both = [
            ("local", stats.streams_opened),
            ("peer", stats.streams_accepted),
        ];
        for (role_name, count) in both {
            put(
                &mut total,
                &[("role", *role), ("opened_by", role_name)],
                count,
            )?;
        }
    }
    let mut refused = counter(
        encoder,
        "streams_refused",
        "Streams of peers that got REFUSED_STREAM",
    )?;
    for (role, side) in sides {
        put(&mut refused, &[("role", *role)], side.stats.streams_refused)?;
    }
    let mut pushes = counter(
        encoder,
        "pushes",
        "Pushes sent (server) or accepted (client)",
    )?;
    for (role, side) in sides {
        put(&mut pushes, &[("role", *role)], side.pushes)?;
    }
    let mut requests = counter(encoder, "requests", "Requests")?;
    for (role, side) in sides {
        put(&mut requests, &[("role", *role)], side.exchanges.requests)?;
    }
    let mut responses = counter(encoder, "responses", "Responses, by status class")?;
    for (role, side) in sides {
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"].into_iter();
        for (class, count) in classes.zip(side.exchanges.responses) {
            put(&mut responses, &[("role", *role), ("class", class)], count)?;
        }
    }
    Ok(())
}

fn bytes_and_frames(encoder: &mut DescriptorEncoder<'_>, sides: &[RoleStats<'_>]) -> fmt::Result {
    let mut frames = counter(encoder, "frames", "Frames, by direction and type")?;
    for (role, side) in sides {
        let stats = &side.stats;
        let both = [
            ("sent", &stats.frames_sent),
            ("received", &stats.frames_received),
        ];
        for (direction, counted) in both {
            for (kind, count) in counted.iter().filter(|(_, count)| *count > 0) {
                let labels = [("role", *role), ("direction", direction), ("type", kind)];
                put(&mut frames, &labels, count)?;
            }
        }
    }
    let mut data = counter(encoder, "data_bytes", "DATA payload bytes, by direction")?;
    for (role, side) in sides {
        let stats = &side.stats;
        let both = [
            ("sent", stats.sent_data_bytes),
            ("received", stats.received_data_bytes),
        ];
        for (direction, count) in both {
            put(
                &mut data,
                &[("role", *role), ("direction", direction)],
                count,
            )?;
        }
    }
    let mut blocks = counter(
        encoder,
        "header_block_bytes",
        "Header block bytes, plain and compressed on the wire",
    )?;
    for (role, side) in sides {
        let stats = &side.stats;
        let all = [
            ("sent", "plain", stats.sent_block_plain_bytes),
            ("sent", "wire", stats.sent_block_wire_bytes),
            ("received", "plain", stats.received_block_plain_bytes),
            ("received", "wire", stats.received_block_wire_bytes),
        ];
        for (direction, form, count) in all {
            let labels = [("role", *role), ("direction", direction), ("form", form)];
            put(&mut blocks, &labels, count)?;
        }
    }
    Ok(())
}

fn resets_and_limits(encoder: &mut DescriptorEncoder<'_>, sides: &[RoleStats<'_>]) -> fmt::Result {
    let mut resets = counter(
        encoder,
        "resets",
        "RST_STREAM frames, by direction and status",
    )?;
    for (role, side) in sides {
        let stats = &side.stats;
        let both = [
            ("sent", &stats.resets_sent),
            ("received", &stats.resets_received),
        ];
        for (direction, counted) in both {
            for (status, count) in counted.iter().filter(|(_, count)| *count > 0) {
                let labels = [
                    ("role", *role),
                    ("direction", direction),
                    ("status", status),
                ];
                put(&mut resets, &labels, count)?;
            }
        }
    }
    let mut limits = counter(encoder, "limit_hits", "Limits that peers reached, by name")?;
    for (role, side) in sides {
        for limit in spdy::Limit::ALL {
            let labels = [("role", *role), ("limit", limit.name())];
            put(&mut limits, &labels, side.stats.limits.of(*limit).into())?;
        }
    }
    Ok(())
}

fn round_trips(encoder: &mut DescriptorEncoder<'_>, sides: &[RoleStats<'_>]) -> fmt::Result {
    let (name, help) = (
        "ping_round_trip_seconds",
        "Round-trip times measured by PING",
    );
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Histogram)?;
    for (role, side) in sides {
        let RoundTrips { buckets, sum } = side.round_trips;
        let bounds = RTT_BOUNDS_MS.map(|bound| bound as f64 / 1000.0);
        let bounds = bounds.into_iter().chain([f64::INFINITY]);
        let buckets: Vec<_> = bounds.zip(buckets).collect();
        let count = side.round_trips.count();
        metric
            .encode_family(&[("role", *role)])?
            .encode_histogram::<NoLabelSet>(sum.as_secs_f64(), count, &buckets, None)?;
    }
    Ok(())
}
