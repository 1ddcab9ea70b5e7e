//! The access log of `spdy accelerate`: a line for each response, when its body has ended.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use http::Method;
use jiff::Timestamp;
use serde::Serialize;
use spdy_net::protocol::Protocol;
use spdy_proxy::telemetry::access_log::{AccessLog, AccessLogEntry, BodyEnd};
use spdy_proxy::telemetry::page_report::PageCounts;

use crate::output::{BAD, BOLD, DIM, Printer, escape};

/// The text for a value that could not be read.
const ABSENT: &str = "-";

/// Writes a line for each response: JSON on stdout, or text on stderr.
pub(crate) fn log(verbose: bool, json: bool, printer: &Printer) -> Option<AccessLog> {
    let printer = printer.clone();
    verbose.then(|| -> AccessLog {
        Arc::new(move |answered: &AccessLogEntry| {
            if json {
                let line = AccessLogLine::of(answered);
                if let Err(error) = printer.json(&line) {
                    tracing::debug!(%error, "cannot write the access log");
                }
            } else {
                printer.note(format_args!("{}", TextLine(answered)));
            }
        })
    })
}

/// Formats a time as RFC 3339 in UTC, to the millisecond.
fn time(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or_default();
    format!("{at:.3}")
}

/// A response as a line of text.
struct TextLine<'a>(&'a AccessLogEntry);

impl fmt::Display for TextLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(answered) = self;
        let is_error = answered.status.is_client_error() || answered.status.is_server_error();
        let style = if is_error { BAD } else { BOLD };
        write!(
            f,
            "{DIM}{}{DIM:#} {style}{}{style:#} {} {} {DIM}{}, {} bytes, {:.1} ms{DIM:#}",
            time(answered.at),
            answered.status.as_str(),
            answered.method.as_ref().map_or(ABSENT, Method::as_str),
            escape(answered.uri.as_deref().unwrap_or(ABSENT)),
            answered.outcome,
            answered.bytes,
            answered.duration.as_secs_f64() * 1e3
        )?;
        match answered.page {
            Some(PageCounts {
                skip_reason: Some(reason),
                ..
            }) => write!(f, "{DIM}, not rewritten: {reason}{DIM:#}")?,
            Some(PageCounts {
                dry_run: true,
                proxied,
                skipped,
                ..
            }) => write!(
                f,
                "{DIM}, would proxy {proxied} and skip {skipped} URLs{DIM:#}"
            )?,
            Some(PageCounts {
                proxied, skipped, ..
            }) => {
                write!(
                    f,
                    "{DIM}, proxied {proxied} and skipped {skipped} URLs{DIM:#}"
                )?;
            }
            None => {}
        }
        match answered.body_end {
            BodyEnd::Complete => Ok(()),
            BodyEnd::ClientAborted => write!(f, ", {BAD}the client disconnected{BAD:#}"),
            BodyEnd::Shutdown => write!(f, ", {BAD}aborted by the shutdown{BAD:#}"),
            BodyEnd::UpstreamError => write!(f, ", {BAD}aborted by the origin{BAD:#}"),
        }
    }
}

/// A response, when its body has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct AccessLogLine<'a> {
    /// When the request arrived, in UTC (RFC 3339).
    time: String,
    /// The method of the request; `null` if it could not be read.
    method: Option<&'a str>,
    /// The host and the target of the request; `null` if they could not be read.
    uri: Option<&'a str>,
    /// The client's address; `null` if it is unknown.
    client: Option<IpAddr>,
    /// The protocol of the client's connection, by its ALPN name.
    protocol: Option<&'static str>,
    /// The status of the response.
    status: u16,
    /// The outcome of the request, such as `hit` or `miss`.
    outcome: &'static str,
    /// The value of `Cache-Status`; `null` if the response has none.
    cache_status: Option<&'a str>,
    /// The trace of the request (W3C Trace Context); `null` if it has none.
    trace_id: Option<String>,
    /// From the request to the head of the response.
    time_to_head_ms: f64,
    /// From the request to the end of the body.
    duration_ms: f64,
    /// Bytes of the body, with its content coding, that the connection accepted.
    bytes: u64,
    /// How the body ended: `complete`, `client-aborted`, `shutdown` or `upstream-error`.
    body_end: &'static str,
    /// Counts of the references of a page of the site; `null` for other responses.
    page: Option<PageCounts>,
}

impl<'a> AccessLogLine<'a> {
    fn of(answered: &'a AccessLogEntry) -> Self {
        Self {
            time: time(answered.at),
            method: answered.method.as_ref().map(Method::as_str),
            uri: answered.uri.as_deref(),
            client: answered.client,
            protocol: answered.protocol.map(Protocol::alpn),
            status: answered.status.as_u16(),
            outcome: answered.outcome,
            cache_status: answered.cache_status.as_deref(),
            trace_id: answered.trace.map(|trace| trace.to_string()),
            time_to_head_ms: answered.time_to_head.as_secs_f64() * 1e3,
            duration_ms: answered.duration.as_secs_f64() * 1e3,
            bytes: answered.bytes,
            body_end: answered.body_end.name(),
            page: answered.page,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http::StatusCode;

    use super::*;

    fn answered() -> AccessLogEntry {
        AccessLogEntry {
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_345_445_070),
            method: Some(Method::GET),
            uri: Some("www.site.test/".to_owned()),
            client: None,
            protocol: None,
            status: StatusCode::OK,
            outcome: "miss",
            cache_status: None,
            trace: None,
            time_to_head: Duration::from_micros(1_500),
            duration: Duration::from_micros(2_250),
            bytes: 1234,
            body_end: BodyEnd::Complete,
            page: None,
        }
    }

    fn plain(answered: &AccessLogEntry) -> String {
        anstream::adapter::strip_str(&TextLine(answered).to_string()).to_string()
    }

    #[test]
    fn a_log_line_has_time_size_and_outcome() {
        let mut one = answered();
        let line = "2026-11-22T11:04:05.070Z 200 GET www.site.test/ miss, 1234 bytes, 2.2 ms";
        assert_eq!(plain(&one), line);
        one.body_end = BodyEnd::ClientAborted;
        assert_eq!(plain(&one), format!("{line}, the client disconnected"));
        one.page = Some(PageCounts {
            dry_run: true,
            skip_reason: None,
            proxied: 2,
            skipped: 1,
        });
        let page = ", would proxy 2 and skip 1 URLs, the client disconnected";
        assert_eq!(plain(&one), format!("{line}{page}"));
        let json = serde_json::to_value(AccessLogLine::of(&one)).expect("valid JSON");
        assert_eq!(json["time"], "2026-11-22T11:04:05.070Z");
        assert_eq!(
            (&json["bytes"], &json["body_end"]),
            (&1234.into(), &"client-aborted".into())
        );
        assert_eq!(
            (&json["time_to_head_ms"], &json["duration_ms"]),
            (&1.5.into(), &2.25.into())
        );
        assert_eq!(json["page"]["proxied"], 2);
    }

    #[test]
    fn unparsed_and_unprintable_fields_are_replaced() {
        let mut one = answered();
        one.uri = Some("www.site.test/\u{9b}31mX".to_owned());
        assert!(plain(&one).contains(r" GET www.site.test/\u{9b}31mX miss"));
        (one.method, one.uri) = (None, None);
        assert!(plain(&one).contains(" 200 - - miss"), "{}", plain(&one));
    }
}
