//! The log entry of each response, written when its body has ended: only then is it known how much was sent, and whether it is complete.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName};
use http::{Method, StatusCode, Uri};
use http_body::{Frame, SizeHint};
use spdy::body::{Body, BoxError};
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;
use spdy_net::latch::Latch;
use spdy_net::protocol::Protocol;
use spdy_net::refusal::Refusal;

use crate::telemetry::counters::Outcome;
use crate::telemetry::page_report::PageCounts;
use crate::telemetry::page_reports::PageReports;
use crate::telemetry::trace_context::TraceId;

/// Maximum length of `Referer` and `User-Agent` in a log entry, bytes; the rest is cut off.
pub const FIELD_BYTES: usize = 1024;

/// Called for every response.
pub type AccessLog = Arc<dyn Fn(&AccessLogEntry) + Send + Sync>;

/// One response, for a log.
#[derive(Debug)]
pub struct AccessLogEntry {
    /// When the request arrived.
    pub at: SystemTime,
    /// The method of the request; `None` if it could not be read.
    pub method: Option<Method>,
    /// Host that the client named, and the target; `None` if the request could not be read.
    pub uri: Option<String>,
    /// The target of the request (path and query); `None` if it could not be read.
    pub target: Option<String>,
    /// The fields of the request that logs have.
    pub fields: LoggedFields,
    /// The client's address.
    pub client: Option<IpAddr>,
    /// The protocol of the connection.
    pub protocol: Option<Protocol>,
    /// The status of the response.
    pub status: StatusCode,
    /// The request's outcome.
    pub outcome: &'static str,
    /// The `Cache-Status` of the response (RFC 9211); the value of this proxy is the last one.
    pub cache_status: Option<String>,
    /// The trace of the request (W3C Trace Context): that of its spans if there are any, else the one that the client sent.
    pub trace: Option<TraceId>,
    /// From the request to the head of the response.
    pub time_to_head: Duration,
    /// From the request to the end of the response.
    pub duration: Duration,
    /// Bytes of the body, under its coding, that the client's connection accepted; it may have lost the last of them.
    pub bytes: u64,
    /// How the body ended.
    pub body_end: BodyEnd,
    /// The results for the references of a page of the site's own, if it was rewritten already.
    pub page: Option<PageCounts>,
}

impl AccessLogEntry {
    /// An entry for bytes that were no request, on a connection from `from`.
    pub(crate) fn malformed_request(
        refusal: &Refusal<'_>,
        at: SystemTime,
        from: Option<IpAddr>,
    ) -> Self {
        Self {
            at,
            method: refusal.method.cloned(),
            uri: refusal.uri.map(Uri::to_string),
            target: refusal.uri.map(target_of),
            fields: refusal.headers.map(LoggedFields::of).unwrap_or_default(),
            client: from,
            protocol: Some(refusal.protocol),
            status: refusal.flaw.status(),
            outcome: Outcome::MALFORMED.0,
            cache_status: None,
            trace: None,
            time_to_head: Duration::ZERO,
            duration: Duration::ZERO,
            bytes: refusal.body_bytes,
            body_end: BodyEnd::Complete,
            page: None,
        }
    }
}

/// The target of a request with `uri`: path and query, or what the client sent instead of them.
pub(crate) fn target_of(uri: &Uri) -> String {
    match uri.path_and_query() {
        Some(target) => target.to_string(),
        None => uri.to_string(),
    }
}

/// The fields of a request that a log has. Their bytes are the client's, so a log must escape them.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LoggedFields {
    /// The first [`FIELD_BYTES`] of `Referer`.
    pub referer: Option<Box<[u8]>>,
    /// The first [`FIELD_BYTES`] of `User-Agent`.
    pub user_agent: Option<Box<[u8]>>,
}

impl LoggedFields {
    /// The fields in `headers`.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let field = |name: HeaderName| {
            let value = headers.get(name)?.as_bytes();
            Some(value[..value.len().min(FIELD_BYTES)].into())
        };
        Self {
            referer: field(header::REFERER),
            user_agent: field(header::USER_AGENT),
        }
    }
}

/// How the body of a response ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyEnd {
    /// All of it was sent.
    Complete,
    /// The client cancelled it, or did not read for too long.
    ClientAborted,
    /// The program ended before the body did: the time that connections have to end was over.
    Shutdown,
    /// The response of the origin was incomplete, or met a limit.
    UpstreamError,
}

impl BodyEnd {
    /// The value in logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::ClientAborted => "client-aborted",
            Self::Shutdown => "shutdown",
            Self::UpstreamError => "upstream-error",
        }
    }
}

/// An entry that is written when a body has ended.
pub(crate) struct PendingLogEntry {
    pub(crate) log: AccessLog,
    /// The part of the entry that is known when the head is sent.
    pub(crate) entry: AccessLogEntry,
    pub(crate) began: Instant,
    /// Set when the program drops the client's connection.
    pub(crate) cut_off: Latch,
    pub(crate) runtime: SharedRuntime,
    pub(crate) reports: Arc<PageReports>,
    /// The URL, if it is a page of the site's own.
    pub(crate) page: Option<String>,
}

impl PendingLogEntry {
    fn write(&mut self, ended: BodyEnd) {
        let page = self.page.as_deref();
        self.entry.page = page.and_then(|url| self.reports.counts(url));
        self.entry.duration = self.runtime.now() - self.began;
        self.entry.body_end = ended;
        (self.log)(&self.entry);
    }
}

/// `body`; `line` is written at its end.
pub(crate) fn log_at_end(body: Body, mut line: PendingLogEntry) -> Body {
    if http_body::Body::is_end_stream(&body) {
        line.write(BodyEnd::Complete);
        return body;
    }
    Body::wrap(LoggedBody {
        announced: http_body::Body::size_hint(&body).exact(),
        body,
        line: Some(Box::new(line)),
    })
}

struct LoggedBody {
    body: Body,
    /// Its length, if it was known at its beginning: a connection that has read this many bytes does not poll again.
    announced: Option<u64>,
    /// `None` at the end.
    line: Option<Box<PendingLogEntry>>,
}

impl LoggedBody {
    fn write(&mut self, ended: BodyEnd) {
        if let Some(mut line) = self.line.take() {
            line.write(ended);
        }
    }
}

impl Drop for LoggedBody {
    fn drop(&mut self) {
        let Some(line) = &self.line else {
            return;
        };
        let entry = &line.entry;
        // The body of a response to HEAD is never read.
        let is_complete = http_body::Body::is_end_stream(&self.body)
            || self.announced == Some(entry.bytes)
            || entry.method == Some(Method::HEAD);
        let ended = match line.cut_off.is_set() {
            _ if is_complete => BodyEnd::Complete,
            true => BodyEnd::Shutdown,
            false => BodyEnd::ClientAborted,
        };
        self.write(ended);
    }
}

impl http_body::Body for LoggedBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                let len = frame.data_ref().map_or(0, Bytes::len);
                if let Some(line) = &mut this.line {
                    line.entry.bytes += len as u64;
                }
                if this.body.is_end_stream() {
                    this.write(BodyEnd::Complete);
                }
            }
            Some(Err(_)) => this.write(BodyEnd::UpstreamError),
            None => this.write(BodyEnd::Complete),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn logged_fields_are_cut_at_their_limit() {
        let long = "a".repeat(FIELD_BYTES + 1);
        let value = HeaderValue::try_from(long).expect("a valid value");
        let headers = HeaderMap::from_iter([(header::REFERER, value)]);
        let fields = LoggedFields::of(&headers);
        let len = fields.referer.map(|referer| referer.len());
        assert_eq!((len, fields.user_agent), (Some(FIELD_BYTES), None));
    }
}
