//! The host names under which a server for operators may be requested: protection against DNS rebinding.
//!
//! A page of `evil.test` can make its name resolve to 127.0.0.1, and then read `http://evil.test:9180/metrics` as its own origin.
//! The browser sends `evil.test` as the host, so a request is answered only if its host cannot belong to another site:
//!
//! ```text
//! 127.0.0.1:9180, [::1]           an address: it needs no DNS
//! localhost, *.localhost          loopback (RFC 6761 §6.3)
//! metrics.internal                a configured name
//! no host at all                  HTTP/1.0, which no browser speaks
//! ```

use std::net::IpAddr;

use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use spdy::body::Body;

/// Maximum length of a host that a response quotes, bytes: that of DNS.
const MAX_QUOTED_BYTES: usize = 255;

/// Hosts that are allowed in addition to addresses and `localhost`.
#[derive(Clone, Debug, Default)]
pub struct AllowedHosts(Vec<String>);

impl AllowedHosts {
    /// `names` without ports, in any case.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self(names.iter().map(|name| name.to_ascii_lowercase()).collect())
    }

    /// The response to `request` if its host is not allowed: 421, with `advice` for the operator.
    #[must_use]
    pub fn refusal<B>(&self, request: &Request<B>, advice: &str) -> Option<Response<Body>> {
        let host = match request.uri().authority() {
            Some(authority) => authority.as_str(),
            None => host_of(request.headers())?,
        };
        if self.allows(host) {
            return None;
        }
        let shown = host.get(..MAX_QUOTED_BYTES).unwrap_or(host);
        let text = format!("unknown host {shown:?}: {advice}\n");
        let mut response = Response::new(Body::from(text.into_bytes()));
        *response.status_mut() = StatusCode::MISDIRECTED_REQUEST;
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, plain);
        Some(response)
    }

    fn allows(&self, host: &str) -> bool {
        let Ok(authority) = host.parse::<Authority>() else {
            return false;
        };
        let host = authority.host().to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        bare.parse::<IpAddr>().is_ok()
            || host == "localhost"
            || host.ends_with(".localhost")
            || self.0.iter().any(|name| name == host)
    }
}

/// The value of `Host`; one that is not text is not an allowed host.
fn host_of(headers: &HeaderMap) -> Option<&str> {
    let host = headers.get(header::HOST)?;
    Some(host.to_str().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The status of the rejection of a request with `host`; `None` if it is allowed.
    fn refused(host: &[u8]) -> Option<u16> {
        let allowed = AllowedHosts::new(&["Metrics.internal".to_owned()]);
        let mut request = Request::new(());
        let host = HeaderValue::from_bytes(host).expect("a value");
        request.headers_mut().insert(header::HOST, host);
        let refusal = allowed.refusal(&request, "use an address")?;
        Some(refusal.status().as_u16())
    }

    #[test]
    fn only_addresses_loopback_and_configured_names_are_answered() {
        for host in [
            "127.0.0.1",
            "127.0.0.1:9180",
            "10.1.2.3:9180",
            "[::1]:9180",
            "localhost:9180",
            "LOCALHOST.",
            "spdy.localhost",
            "metrics.internal:9180",
        ] {
            assert_eq!(refused(host.as_bytes()), None, "{host}");
        }
        for host in [
            &b"evil.test"[..],
            b"evil.test:9180",
            b"127.0.0.1.evil.test",
            b"localhost.evil.test",
            b"notlocalhost",
            b"xmetrics.internal",
            b"a b",
            b"",
            b"\xff",
        ] {
            assert_eq!(refused(host), Some(421), "{}", host.escape_ascii());
        }
    }

    #[test]
    fn the_authority_of_the_target_counts_before_the_host_field() {
        let allowed = AllowedHosts::default();
        for (target, is_refused) in [
            ("http://evil.test/metrics", true),
            ("http://[::1]:1/", false),
        ] {
            let request = Request::get(target).header(header::HOST, "localhost");
            let request = request.body(()).expect("a request");
            assert_eq!(
                allowed.refusal(&request, "").is_some(),
                is_refused,
                "{target}"
            );
        }
        assert!(allowed.refusal(&Request::new(()), "").is_none(), "HTTP/1.0");
    }
}
