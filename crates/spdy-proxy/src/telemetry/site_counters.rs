//! Counters of one site: its requests, what the cache saved, and its own origin.
//!
//! Each site has one [`SiteCounters`], which its requests reach without a lookup. It outlives a reload of the configuration. A record is a
//! few relaxed additions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::StatusCode;
use spdy::body::Body;
use spdy_net::body_wrapper::wrap_poll;

use crate::telemetry::counters::Outcome;
use crate::telemetry::histogram::{
    AtomicHistogram, Histogram, ORIGIN_LATENCY_BOUNDS, RESPONSE_BOUNDS,
};

/// The classes of a status, by the names that they have in metrics.
const CLASSES: [&str; 6] = ["1xx", "2xx", "3xx", "4xx", "5xx", "other"];

/// Where the body of a response came from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BodySource {
    /// The cache, or a response that was on its way for another request: the origin sent no body for this request.
    Cache,
    /// The origin.
    Origin,
    /// The accelerator itself: a redirect, a rejection or an error.
    Accelerator,
}

impl BodySource {
    fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::HIT
            | Outcome::STALE
            | Outcome::STALE_ON_ERROR
            | Outcome::REVALIDATED
            | Outcome::COALESCED => Self::Cache,
            Outcome::MISS | Outcome::UNCACHEABLE => Self::Origin,
            _ => Self::Accelerator,
        }
    }
}

/// The counters of one site.
#[derive(Debug)]
pub struct SiteCounters {
    /// By class of the status, in the order of [`CLASSES`].
    classes: [AtomicU64; CLASSES.len()],
    hits: AtomicU64,
    misses: AtomicU64,
    /// Bytes of bodies that the connections of clients accepted.
    response_bytes: AtomicU64,
    /// Those of them that the origin did not send for the request.
    saved_bytes: AtomicU64,
    latency: AtomicHistogram,
    origin_latency: AtomicHistogram,
    origin_errors: AtomicU64,
}

/// The values of [`SiteCounters`] at one time.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SiteSnapshot {
    /// Responses by class of the status: only classes that occurred.
    pub classes: Vec<(&'static str, u64)>,
    /// Responses with a body from the cache, or from a fetch for another request.
    pub hits: u64,
    /// Responses with a body from the origin.
    pub misses: u64,
    /// Bytes of bodies that the connections of clients accepted, under their coding.
    pub response_bytes: u64,
    /// Those of them that belong to `hits`.
    pub saved_bytes: u64,
    /// From a request to the head of its response.
    pub latency: Histogram,
    /// From a request to the site's own origin to the head of its response.
    pub origin_latency: Histogram,
    /// Responses of the site's own origin with a status from 500 to 599, and requests to it that failed or were not sent because of failures.
    pub origin_errors: u64,
}

impl Default for SiteCounters {
    fn default() -> Self {
        Self {
            classes: Default::default(),
            hits: AtomicU64::new(0),
            misses: AtomicU64::new(0),
            response_bytes: AtomicU64::new(0),
            saved_bytes: AtomicU64::new(0),
            latency: AtomicHistogram::new(RESPONSE_BOUNDS),
            origin_latency: AtomicHistogram::new(ORIGIN_LATENCY_BOUNDS),
            origin_errors: AtomicU64::new(0),
        }
    }
}

impl SiteCounters {
    /// Records a response whose head is sent after `took`.
    pub(crate) fn record_response(&self, status: StatusCode, outcome: Outcome, took: Duration) {
        let class = usize::from(status.as_u16() / 100).wrapping_sub(1);
        add(&self.classes[class.min(CLASSES.len() - 1)], 1);
        match BodySource::of(outcome) {
            BodySource::Cache => add(&self.hits, 1),
            BodySource::Origin => add(&self.misses, 1),
            BodySource::Accelerator => (),
        }
        self.latency.record(took);
    }

    /// `body` of a response with `outcome`, whose bytes are counted as the client's connection accepts them. A body in memory is counted at
    /// once.
    pub(crate) fn count_body(self: &Arc<Self>, outcome: Outcome, body: Body) -> Body {
        let is_saved = BodySource::of(outcome) == BodySource::Cache;
        if let Some(in_memory) = body.try_clone() {
            let len = http_body::Body::size_hint(&in_memory).exact();
            self.add_bytes(len.unwrap_or(0), is_saved);
            return body;
        }
        let counters = self.clone();
        wrap_poll(body, move |body, cx| {
            let frame = http_body::Body::poll_frame(body, cx);
            if let std::task::Poll::Ready(Some(Ok(frame))) = &frame
                && let Some(data) = frame.data_ref()
            {
                counters.add_bytes(data.len() as u64, is_saved);
            }
            frame
        })
    }

    fn add_bytes(&self, bytes: u64, is_saved: bool) {
        add(&self.response_bytes, bytes);
        if is_saved {
            add(&self.saved_bytes, bytes);
        }
    }

    /// Records that the site's own origin sent the head of a response after `took`.
    pub(crate) fn record_origin_response(&self, status: StatusCode, took: Duration) {
        self.origin_latency.record(took);
        if status.is_server_error() {
            self.record_origin_error();
        }
    }

    /// Records that a request to the site's own origin failed.
    pub(crate) fn record_origin_error(&self) {
        add(&self.origin_errors, 1);
    }

    /// The values so far.
    #[must_use]
    pub fn load(&self) -> SiteSnapshot {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let classes = CLASSES.into_iter().zip(self.classes.iter().map(load));
        SiteSnapshot {
            classes: classes.filter(|(_, count)| *count > 0).collect(),
            hits: load(&self.hits),
            misses: load(&self.misses),
            response_bytes: load(&self.response_bytes),
            saved_bytes: load(&self.saved_bytes),
            latency: self.latency.load(),
            origin_latency: self.origin_latency.load(),
            origin_errors: load(&self.origin_errors),
        }
    }
}

impl SiteSnapshot {
    /// All responses.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.classes.iter().map(|(_, count)| count).sum()
    }
}

fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{FutureExt, stream};

    use super::*;

    #[test]
    fn response_is_counted_by_class_and_source_of_its_body() {
        let counters = SiteCounters::default();
        let took = Duration::from_millis(2);
        for (code, outcome) in [
            (200, Outcome::HIT),
            (304, Outcome::REVALIDATED),
            (200, Outcome::COALESCED),
            (200, Outcome::MISS),
            (404, Outcome::REFUSED),
            (101, Outcome::WEBSOCKET),
            (700, Outcome::UNCACHEABLE),
        ] {
            let status = StatusCode::from_u16(code).expect("a status");
            counters.record_response(status, outcome, took);
        }
        let counts = counters.load();
        let classes = [("1xx", 1), ("2xx", 3), ("3xx", 1), ("4xx", 1), ("other", 1)];
        assert_eq!(counts.classes, classes);
        assert_eq!((counts.hits, counts.misses, counts.requests()), (3, 2, 7));
        assert_eq!(counts.latency.count(), 7);
        assert_eq!(counts.latency.sum, took * 7);
    }

    #[test]
    fn bytes_of_a_stream_are_counted_as_they_are_read() {
        let counters = Arc::new(SiteCounters::default());
        let bytes = |counters: &SiteCounters| {
            let counts = counters.load();
            (counts.response_bytes, counts.saved_bytes)
        };
        let _unread = counters.count_body(Outcome::MISS, Body::from("in memory"));
        assert_eq!(bytes(&counters), (9, 0));
        let pieces = ["ab", "cde"].map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)));
        let pieces = Body::from_stream(stream::iter(pieces));
        let mut body = counters.count_body(Outcome::STALE, pieces);
        assert_eq!(bytes(&counters), (9, 0));
        let piece = body.receive().now_or_never().flatten();
        assert!(matches!(piece, Some(Ok(piece)) if piece == "ab"));
        assert_eq!(bytes(&counters), (11, 2));
        drop(body);
        assert_eq!(bytes(&counters), (11, 2));
    }

    #[test]
    fn origin_errors_are_failures_and_server_errors() {
        let counters = SiteCounters::default();
        for status in [
            StatusCode::OK,
            StatusCode::NOT_FOUND,
            StatusCode::BAD_GATEWAY,
        ] {
            counters.record_origin_response(status, Duration::from_millis(30));
        }
        counters.record_origin_error();
        let counts = counters.load();
        assert_eq!(
            (counts.origin_errors, counts.origin_latency.count()),
            (2, 3)
        );
        assert_eq!(counts.requests(), 0);
    }
}
