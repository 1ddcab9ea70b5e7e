//! The HTTP endpoint of metrics: admits connections, and answers a request in the format that it accepts ([`Format`]).

use std::fmt;

use http::{Method, Request, Response, StatusCode, header};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use spdy::Body;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::limit::LimitHits;

use super::format::Format;

/// The path of the metrics.
pub const PATH: &str = "/metrics";

/// Connections open at once for the metrics. Their file descriptors are not available to clients.
const CONNECTIONS: usize = 64;
/// Connections open at once from one address, so that no single address can block Prometheus.
const CONNECTIONS_PER_ADDRESS: u32 = 16;

/// Admission of metrics connections. Limits reached here are not counted as limits that clients reach.
#[must_use]
pub fn admission() -> Admission {
    let mut limits = AdmissionLimits::default();
    limits.connections = CONNECTIONS;
    limits.per_address = CONNECTIONS_PER_ADDRESS;
    Admission::new(limits, LimitHits::default())
}

/// Answers one request for the metrics.
#[must_use]
pub fn answer(registry: &Registry, request: &Request<Body>) -> Response<Body> {
    let (status, kind, text) = if request.uri().path() != PATH {
        (
            StatusCode::NOT_FOUND,
            "text/plain",
            format!("expected {PATH}\n"),
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
            Err(fmt::Error) => unreachable!("writing to a string cannot fail"),
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
    response.expect("a valid response")
}

#[cfg(test)]
mod tests {
    use spdy::metrics::Metrics;

    use super::super::registry::registry;
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
        let body = response.into_body().try_clone().expect("a body in memory");
        let text = futures_util::FutureExt::now_or_never(body.collect_up_to(1 << 20));
        let text = text.expect("a body in memory").expect("a complete body");
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
            let header_value = response.headers().get(header::ALLOW);
            let header_value =
                header_value.map(|header_value| header_value.to_str().expect("text"));
            assert_eq!((response.status().as_u16(), header_value), (status, allow));
        }
    }
}
