//! What `spdy fetch` reports of one URL.

use http::Uri;
use serde::Serialize;
use spdy::client::PushInfo;
use spdy_client::route::Route;
use spdy_client::timing::Timings;
use spdy_clock::Instant;

use crate::output::{BOLD, DIM, format_count};

/// The result of one URL.
#[derive(Debug, Default, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FetchResult {
    /// The requested URL.
    pub(crate) url: String,
    /// The URL after redirects; absent without redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) final_url: Option<String>,
    /// The status of the response; `null` without a response.
    pub(crate) status: Option<u16>,
    /// The protocol of the connection, by its ALPN name.
    protocol: Option<&'static str>,
    /// Number of the connection, from 0 in the order of opening.
    connection: Option<usize>,
    /// Address and port of the server.
    address: Option<String>,
    /// TLS of the connection; `null` without TLS.
    tls: Option<Tls>,
    /// Received bytes of the body.
    pub(crate) bytes: u64,
    /// SHA-256 of the received bytes, in hexadecimal.
    pub(crate) sha256: Option<String>,
    /// Names and values of the response headers, in their order.
    headers: Vec<(String, String)>,
    /// How the response was pushed; absent if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pushed: Option<PushReport>,
    /// Durations of the phases; `null` without a response.
    pub(crate) timings_ms: Option<PhaseTimes>,
    /// Why the fetch failed; `null` if it succeeded.
    pub(crate) error: Option<String>,
}

/// TLS of a connection.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Tls {
    /// The version of TLS.
    version: String,
    /// The cipher suite; `null` over QUIC, which does not report it.
    cipher: Option<String>,
    /// True if the TLS session was resumed.
    resumed: bool,
}

/// Durations of the phases, milliseconds; `null` for a phase that did not happen.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PhaseTimes {
    /// Name lookup, milliseconds; `null` if the name was cached.
    dns: Option<f64>,
    /// Handshake of TCP, milliseconds; `null` if the exchange is not the first on the connection.
    connect: Option<f64>,
    /// Handshake of TLS, milliseconds; `null` if the exchange is not the first on the connection.
    tls: Option<f64>,
    /// From the request to the head of the response, milliseconds.
    first_byte: f64,
    /// From the request to the last byte, including redirects and waiting, milliseconds.
    pub(crate) total: f64,
}

/// Milliseconds from the first time to the second.
pub(crate) fn milliseconds((from, to): (Instant, Instant)) -> f64 {
    (to - from).as_secs_f64() * 1e3
}

impl FetchResult {
    /// The result of a fetch of `url` that has just begun.
    pub(crate) fn of(url: &Uri) -> Self {
        Self {
            url: url.to_string(),
            ..Self::default()
        }
    }

    /// The result of a push that has just begun.
    pub(crate) fn of_push(url: &Uri, connection: usize, route: &Route) -> Self {
        let mut fetched = Self {
            connection: Some(connection),
            ..Self::of(url)
        };
        fetched.note_route(route);
        fetched
    }

    /// Records the response head and the connection.
    pub(crate) fn note(&mut self, head: &http::response::Parts) {
        self.pushed = PushReport::of(head);
        self.status = Some(head.status.as_u16());
        self.headers = head
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        if let Some(route) = head.extensions.get::<Route>() {
            self.note_route(route);
        }
        if let Some(timings) = head.extensions.get::<Timings>() {
            self.connection = Some(timings.connection);
            self.timings_ms = Some(PhaseTimes {
                dns: timings.dns.map(milliseconds),
                connect: timings.connect.map(milliseconds),
                tls: timings.tls.map(milliseconds),
                first_byte: milliseconds((timings.sent, timings.first_byte)),
                total: 0.0,
            });
        }
    }

    /// Records the connection that the response came on.
    fn note_route(&mut self, route: &Route) {
        self.protocol = Some(route.protocol.alpn());
        self.address = Some(route.address.to_string());
        self.tls = route.tls.map(|tls| Tls {
            version: tls
                .version
                .map_or_else(String::new, |version| format!("{version:?}")),
            cipher: tls.suite.map(|suite| format!("{suite:?}")),
            resumed: tls.resumed,
        });
    }
}

/// How a response was pushed.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct PushReport {
    /// ID of its stream.
    pub(crate) stream: u32,
    /// ID of the stream of the request that the push is associated with.
    pub(crate) associated_to: u32,
    /// True if the push answered a request.
    pub(crate) claimed: bool,
}

impl PushReport {
    /// The report for a response to a request; `None` if it was not pushed.
    pub(crate) fn of(head: &http::response::Parts) -> Option<Self> {
        let pushed: &PushInfo = head.extensions.get()?;
        Some(Self {
            stream: pushed.id.value(),
            associated_to: pushed.associated_to.value(),
            claimed: true,
        })
    }

    /// The result as text.
    pub(crate) fn line(self, fetched: &FetchResult) -> String {
        let claimed = if self.claimed { "claimed" } else { "unclaimed" };
        format!(
            "{BOLD}pushed{BOLD:#} {} {DIM}on stream {} for stream {}, {}, {claimed}{DIM:#}",
            fetched.url,
            self.stream,
            self.associated_to,
            format_count(fetched.bytes, "byte"),
        )
    }
}
