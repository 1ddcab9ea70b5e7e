//! The access log of `spdy accelerate`: a line for each response, when its body has ended.

use std::fmt;
use std::sync::Arc;

use http::Method;
use spdy_accelerator::access_log::json::{AccessLogLine, time};
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

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use http::StatusCode;
    use spdy_proxy::telemetry::access_log::LoggedFields;

    use super::*;

    fn answered() -> AccessLogEntry {
        AccessLogEntry {
            at: SystemTime::UNIX_EPOCH + Duration::from_millis(1_795_345_445_070),
            method: Some(Method::GET),
            uri: Some("www.site.test/".to_owned()),
            target: Some("/".to_owned()),
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
