//! Serves the metrics of `spdy serve --metrics`: the counters of [`spdy::metrics`] as text for Prometheus, in the format
//! that it requests ([`metrics_format`](super::metrics_format)). Names and labels are in `docs/reference/metrics.md`.

use std::fmt;
use std::sync::Arc;

use http::{Method, Request, Response, StatusCode, header};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;
use spdy::Body;
use spdy::metrics::{Metrics, RTT_BOUNDS_MS, RoleMetrics, RoundTrips};
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::limit::{ConnectionLimit, LimitHits};

use super::metrics_format::Format;

/// Where they are found.
pub(crate) const PATH: &str = "/metrics";

/// Connections open at once for the metrics. Their file descriptors are not available to clients.
const CONNECTIONS: usize = 64;
/// Those of one address, so that no other can keep Prometheus out alone.
const CONNECTIONS_PER_ADDRESS: u32 = 16;

/// Admission of metrics connections. Limits reached here are not counted as limits that clients reach.
pub(crate) fn admission() -> Admission {
    let limits = AdmissionLimits {
        connections: CONNECTIONS,
        per_address: CONNECTIONS_PER_ADDRESS,
        ..AdmissionLimits::default()
    };
    Admission::new(limits, LimitHits::default())
}

/// Answers one request for the metrics.
pub(crate) fn answer(registry: &Registry, request: &Request<Body>) -> Response<Body> {
    let (status, kind, text) = if request.uri().path() != PATH {
        (
            StatusCode::NOT_FOUND,
            "text/plain",
            format!("want {PATH}\n"),
        )
    } else if *request.method() != Method::GET && *request.method() != Method::HEAD {
        (StatusCode::METHOD_NOT_ALLOWED, "text/plain", String::new())
    } else {
        let mut text = String::new();
        let format = Format::preferred(request.headers());
        match encode(&mut text, registry) {
            Ok(()) => {
                let text = format.of_openmetrics(text);
                (StatusCode::OK, format.content_type(), text)
            }
            Err(fmt::Error) => unreachable!("a string takes whatever is written"),
        }
    };
    let mut response = Response::builder()
        .status(status)
        .header(header::CONTENT_TYPE, kind);
    if status == StatusCode::OK {
        response = response.header(header::VARY, "Accept");
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response = response.header(header::ALLOW, "GET, HEAD"); // required (RFC 9110 §15.5.6)
    }
    let response = response.body(Body::full(text.into_bytes()));
    response.expect("a status and two headers make a response")
}

/// A registry of what `metrics` and `hits` count.
pub(crate) fn registry(metrics: &Metrics, hits: &LimitHits) -> Arc<Registry> {
    let mut registry = Registry::with_prefix("spdy");
    registry.register_collector(Box::new(SessionCollector(metrics.clone())));
    registry.register_collector(Box::new(ConnectionCollector(hits.clone())));
    Arc::new(registry)
}

/// Collects the metrics of all sessions on each request.
#[derive(Debug)]
struct SessionCollector(Metrics);

/// Limits of connections, whatever is spoken on them.
#[derive(Debug)]
struct ConnectionCollector(LimitHits);

impl Collector for ConnectionCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let help = "Limits of connections that clients met";
        let mut limits = counter(&mut encoder, "connection_limit_hits", help)?;
        for limit in ConnectionLimit::ALL {
            put(&mut limits, &[("limit", limit.name())], self.0.of(limit))?;
        }
        Ok(())
    }
}

/// One role's sessions, and what the role is called.
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
            ("us", stats.streams_opened),
            ("peer", stats.streams_accepted),
        ];
        for (who, count) in both {
            put(&mut total, &[("role", *role), ("opened_by", who)], count)?;
        }
    }
    let mut refused = counter(encoder, "streams_refused", "Streams that were refused")?;
    for (role, side) in sides {
        put(&mut refused, &[("role", *role)], side.stats.streams_refused)?;
    }
    let mut pushes = counter(
        encoder,
        "pushes",
        "Pushes sent by servers, taken by clients",
    )?;
    for (role, side) in sides {
        put(&mut pushes, &[("role", *role)], side.pushes)?;
    }
    let mut requests = counter(encoder, "requests", "Requests")?;
    for (role, side) in sides {
        put(&mut requests, &[("role", *role)], side.exchanges.requests)?;
    }
    let mut responses = counter(encoder, "responses", "Responses by class of status")?;
    for (role, side) in sides {
        let classes = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"].into_iter();
        for (class, count) in classes.zip(side.exchanges.responses) {
            put(&mut responses, &[("role", *role), ("class", class)], count)?;
        }
    }
    Ok(())
}

fn bytes_and_frames(encoder: &mut DescriptorEncoder<'_>, sides: &[RoleStats<'_>]) -> fmt::Result {
    let mut frames = counter(encoder, "frames", "Frames by type")?;
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
    let mut data = counter(encoder, "data_bytes", "Payload of DATA")?;
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
        "Header blocks, plain and on the wire",
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
    let mut resets = counter(encoder, "resets", "RST_STREAM by status")?;
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
    let mut limits = counter(encoder, "limit_hits", "Limits that peers met")?;
    for (role, side) in sides {
        for limit in spdy::Limit::ALL {
            let labels = [("role", *role), ("limit", limit.name())];
            put(&mut limits, &labels, side.stats.limits.of(*limit).into())?;
        }
    }
    Ok(())
}

fn round_trips(encoder: &mut DescriptorEncoder<'_>, sides: &[RoleStats<'_>]) -> fmt::Result {
    let (name, help) = ("ping_round_trip_seconds", "Round trips that PING measured");
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

pub(crate) fn counter<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Counter)
}

pub(crate) fn gauge<'a>(
    encoder: &'a mut DescriptorEncoder<'_>,
    name: &'a str,
    help: &str,
) -> Result<MetricEncoder<'a>, fmt::Error> {
    encoder.encode_descriptor(name, help, None, MetricType::Gauge)
}

pub(crate) fn put(
    metric: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    count: u64,
) -> fmt::Result {
    metric
        .encode_family(labels)?
        .encode_counter::<NoLabelSet, _, u64>(&count, None)
}

pub(crate) fn put_gauge(
    metric: &mut MetricEncoder<'_>,
    labels: &impl EncodeLabelSet,
    now: u64,
) -> fmt::Result {
    metric.encode_family(labels)?.encode_gauge(&now)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every sample of the older format belongs to a family with a type and a help.
    #[test]
    fn metrics_in_plain_text_all_have_type_and_help() {
        let registry = registry(&Metrics::new(), &LimitHits::default());
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = http::Uri::from_static(PATH);
        let accept = header::HeaderValue::from_static("text/plain");
        request.headers_mut().insert(header::ACCEPT, accept);
        let response = answer(&registry, &request);
        let kind = &response.headers()[header::CONTENT_TYPE];
        assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
        let body = response.into_body().try_clone().expect("it is in memory");
        let text = futures_util::FutureExt::now_or_never(body.collect_up_to(1 << 20));
        let text = text.expect("it is in memory").expect("it is whole");
        let text = std::str::from_utf8(&text).expect("text");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let mut names: Vec<_> = samples
            .filter_map(|line| line.split(['{', ' ']).next())
            .collect();
        names.dedup();
        assert_eq!(names, ["spdy_connection_limit_hits_total"]);
        for what in ["HELP", "TYPE"] {
            let described = format!("# {what} spdy_connection_limit_hits_total ");
            assert!(text.contains(&described), "{text}");
        }
        assert!(!text.contains("# EOF"), "{text}");
    }

    #[test]
    fn other_methods_get_405_with_allow() {
        let registry = registry(&Metrics::new(), &LimitHits::default());
        for (method, status, allow) in [
            (Method::GET, 200, None),
            (Method::HEAD, 200, None),
            (Method::POST, 405, Some("GET, HEAD")),
        ] {
            let mut request = Request::new(Body::empty());
            *request.method_mut() = method;
            *request.uri_mut() = http::Uri::from_static(PATH);
            let response = answer(&registry, &request);
            let told = response.headers().get(header::ALLOW);
            let told = told.map(|told| told.to_str().expect("text"));
            assert_eq!((response.status().as_u16(), told), (status, allow));
        }
    }
}
