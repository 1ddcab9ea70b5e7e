//! A response as a JSON object: a line of the file, and of `spdy accelerate --verbose --json`.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::SystemTime;

use http::Method;
use jiff::Timestamp;
use serde::Serialize;
use spdy_net::protocol::Protocol;
use spdy_proxy::telemetry::access_log::AccessLogEntry;
use spdy_proxy::telemetry::page_report::PageCounts;

/// Formats a time as RFC 3339 in UTC, to the millisecond.
#[must_use]
pub fn time(at: SystemTime) -> String {
    let at = Timestamp::try_from(at).unwrap_or_default();
    format!("{at:.3}")
}

/// `entry` as a line, with its end.
pub(super) fn line(entry: &AccessLogEntry) -> Vec<u8> {
    let mut line = serde_json::to_vec(&AccessLogLine::of(entry))
        .expect("numbers and texts can be written as JSON");
    line.push(b'\n');
    line
}

/// A response, when its body has ended.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessLogLine<'a> {
    /// When the request arrived, in UTC (RFC 3339).
    pub time: String,
    /// The method of the request; `null` if it could not be read.
    pub method: Option<&'a str>,
    /// The host and the target of the request; `null` if they could not be read.
    pub uri: Option<&'a str>,
    /// The client's address; `null` if it is unknown.
    pub client: Option<IpAddr>,
    /// The protocol of the client's connection, by its ALPN name.
    pub protocol: Option<&'static str>,
    /// The status of the response.
    pub status: u16,
    /// The outcome of the request, such as `hit` or `miss`.
    pub outcome: &'static str,
    /// The value of `Cache-Status`; `null` if the response has none.
    pub cache_status: Option<&'a str>,
    /// The trace of the request (W3C Trace Context); `null` if it has none.
    pub trace_id: Option<String>,
    /// From the request to the head of the response.
    pub time_to_head_ms: f64,
    /// From the request to the end of the body.
    pub duration_ms: f64,
    /// Bytes of the body, with its content coding, that the connection accepted.
    pub bytes: u64,
    /// How the body ended: `complete`, `client-aborted`, `shutdown` or `upstream-error`.
    pub body_end: &'static str,
    /// Counts of the references of a page of the site; `null` for other responses.
    pub page: Option<PageCounts>,
    /// `Referer` of the request, its first 1,024 bytes; `null` if it has none.
    pub referer: Option<Cow<'a, str>>,
    /// `User-Agent` of the request, its first 1,024 bytes; `null` if it has none.
    pub user_agent: Option<Cow<'a, str>>,
}

impl<'a> AccessLogLine<'a> {
    /// The line for `entry`. Bytes of a field that are not UTF-8 are replaced by U+FFFD.
    #[must_use]
    pub fn of(entry: &'a AccessLogEntry) -> Self {
        Self {
            time: time(entry.at),
            method: entry.method.as_ref().map(Method::as_str),
            uri: entry.uri.as_deref(),
            client: entry.client,
            protocol: entry.protocol.map(Protocol::alpn),
            status: entry.status.as_u16(),
            outcome: entry.outcome,
            cache_status: entry.cache_status.as_deref(),
            trace_id: entry.trace.map(|trace| trace.to_string()),
            time_to_head_ms: entry.time_to_head.as_secs_f64() * 1e3,
            duration_ms: entry.duration.as_secs_f64() * 1e3,
            bytes: entry.bytes,
            body_end: entry.body_end.name(),
            page: entry.page,
            referer: entry.fields.referer.as_deref().map(String::from_utf8_lossy),
            user_agent: entry
                .fields
                .user_agent
                .as_deref()
                .map(String::from_utf8_lossy),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use http::StatusCode;
    use spdy_proxy::telemetry::access_log::{BodyEnd, LoggedFields};

    use super::*;

    /// A complete response to a request without a client.
    pub(in crate::access_log) fn entry() -> AccessLogEntry {
        AccessLogEntry {
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_345_445_070),
            method: Some(Method::GET),
            uri: Some("www.site.test/a?b=1".to_owned()),
            target: Some("/a?b=1".to_owned()),
            fields: LoggedFields::default(),
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

    #[test]
    fn a_line_has_time_size_and_fields() {
        let mut one = entry();
        one.body_end = BodyEnd::ClientAborted;
        one.page = Some(PageCounts {
            dry_run: true,
            skip_reason: None,
            proxied: 2,
            skipped: 1,
        });
        one.fields.user_agent = Some(b"a\"\n\xff".as_slice().into());
        let line = String::from_utf8(line(&one)).expect("JSON is UTF-8");
        assert_eq!(line.matches('\n').count(), 1, "{line}");
        let json: serde_json::Value = serde_json::from_str(&line).expect("valid JSON");
        for (key, expected) in [
            ("time", "2026-11-22T11:04:05.070Z".into()),
            ("bytes", 1234.into()),
            ("body_end", "client-aborted".into()),
            ("time_to_head_ms", 1.5.into()),
            ("duration_ms", 2.25.into()),
            ("user_agent", "a\"\n\u{fffd}".into()),
            ("referer", serde_json::Value::Null),
        ] {
            assert_eq!(json[key], expected, "{key}");
        }
        assert_eq!(json["page"]["proxied"], 2);
    }
}
