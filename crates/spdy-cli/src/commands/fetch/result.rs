//! What `spdy fetch` reports of one URL.

use http::Uri;
use serde::Serialize;
use spdy::client::PushInfo;
use spdy_client::route::Route;
use spdy_client::timing::Timings;
use spdy_clock::Instant;

use crate::output::{BOLD, DIM, format_count};

/// What came of it: a line of `--json`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FetchResult {
    /// As it was asked for.
    pub(crate) url: String,
    /// Where redirects led, if they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) final_url: Option<String>,
    pub(crate) status: Option<u16>,
    protocol: Option<&'static str>,
    connection: Option<usize>,
    address: Option<String>,
    /// Version of TLS, and whether an earlier session was resumed.
    tls: Option<Tls>,
    /// Bytes of the body that came.
    pub(crate) bytes: u64,
    /// Of the bytes that came.
    pub(crate) sha256: Option<String>,
    headers: Vec<(String, String)>,
    /// It was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pushed: Option<PushReport>,
    pub(crate) timings: Option<PhaseTimes>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Tls {
    version: String,
    /// `null` over QUIC, which does not report it.
    cipher: Option<String>,
    resumed: bool,
}

/// Lengths of the phases; `null` for what did not happen.
#[derive(Debug, Serialize)]
pub(crate) struct PhaseTimes {
    dns: Option<f64>,
    connect: Option<f64>,
    tls: Option<f64>,
    /// From the request to the head of the response.
    first_byte: f64,
    /// From asking to the last byte, redirects and waiting included.
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

    /// What is known of a push from the first.
    pub(crate) fn of_push(url: &Uri, connection: usize, route: &Route) -> Self {
        let mut fetched = Self {
            connection: Some(connection),
            ..Self::of(url)
        };
        fetched.note_route(route);
        fetched
    }

    /// Notes what the head of the response says, and the way it came.
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
            self.timings = Some(PhaseTimes {
                dns: timings.dns.map(milliseconds),
                connect: timings.connect.map(milliseconds),
                tls: timings.tls.map(milliseconds),
                first_byte: milliseconds((timings.sent, timings.first_byte)),
                total: 0.0,
            });
        }
    }

    /// Notes the connection it came by.
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
pub(crate) struct PushReport {
    /// Its stream.
    pub(crate) stream: u32,
    /// The stream of the request that it came beside.
    pub(crate) beside: u32,
    /// A request was answered by it.
    pub(crate) claimed: bool,
}

impl PushReport {
    /// Of the response to a request; `None` if the server was asked.
    pub(crate) fn of(head: &http::response::Parts) -> Option<Self> {
        let pushed: &PushInfo = head.extensions.get()?;
        Some(Self {
            stream: pushed.id.value(),
            beside: pushed.associated_to.value(),
            claimed: true,
        })
    }

    /// What a person is told of it.
    pub(crate) fn line(self, fetched: &FetchResult) -> String {
        let claimed = if self.claimed {
            "claimed"
        } else {
            "not claimed"
        };
        format!(
            "{BOLD}pushed{BOLD:#} {} {DIM}on stream {} beside {}, {}, {claimed}{DIM:#}",
            fetched.url,
            self.stream,
            self.beside,
            format_count(fetched.bytes, "byte"),
        )
    }
}
