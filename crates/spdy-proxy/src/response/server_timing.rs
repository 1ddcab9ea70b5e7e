//! `Server-Timing`: reports the outcome and the times of a request to clients that may see them.
//!
//! ```text
//! Server-Timing: cache;desc="miss", origin;dur=41.7, total;dur=42.3
//! Server-Timing: cache;desc="hit", rewrite;dur=3.1;desc="when stored", total;dur=0.2
//! ```
//!
//! It shows whether another client requested the resource before, and how far away the origin is. So only clients that send the token get
//! it. The token has its own request field, which is not forwarded.

use std::sync::Arc;
use std::time::Duration;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use parking_lot::RwLock;

use crate::token::Token;

/// The request field with the token.
pub const SPDY_TIMING: HeaderName = HeaderName::from_static("spdy-timing");
/// The response field (W3C Server Timing).
pub const SERVER_TIMING: HeaderName = HeaderName::from_static("server-timing");

/// Which clients get `Server-Timing`.
#[derive(Clone, Debug, Default)]
pub struct Timing {
    /// Clients that send this token; `None`: no client.
    pub token: Option<Token>,
}

impl Timing {
    /// Removes the token from `headers`, valid or not. Gives whether the client gets `Server-Timing`.
    pub(crate) fn take(&self, headers: &mut HeaderMap) -> bool {
        let mut candidate = headers.get_all(SPDY_TIMING).iter();
        let candidate = candidate.next().filter(|_| candidate.next().is_none());
        let is_valid = match (&self.token, candidate) {
            (Some(token), Some(candidate)) => token.is(candidate.as_bytes()),
            _ => false,
        };
        headers.remove(SPDY_TIMING);
        is_valid
    }
}

/// A `Timing` that can be replaced. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct SharedTiming(Arc<RwLock<Timing>>);

impl SharedTiming {
    /// Starts with `timing`.
    #[must_use]
    pub fn new(timing: Timing) -> Self {
        Self(Arc::new(RwLock::new(timing)))
    }

    /// Uses `timing` from now on.
    pub fn replace(&self, timing: Timing) {
        *self.0.write() = timing;
    }

    /// The same as `take` of [`Timing`].
    pub(crate) fn take(&self, headers: &mut HeaderMap) -> bool {
        // Most requests have no token, and need no lock.
        headers.contains_key(SPDY_TIMING) && self.0.read().take(headers)
    }
}

/// How long origins took, from the request to the head. It is in the extensions of a response for which origins were contacted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct OriginDuration(pub(crate) Duration);

/// The parts of the time of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimingBreakdown {
    /// The outcome of the request.
    pub(crate) outcome: &'static str,
    /// The time of the origins.
    pub(crate) origin: Option<Duration>,
    /// The time of rewriting, when the page was stored; ms.
    pub(crate) rewriting_ms: Option<f64>,
    /// From the request to the head of the response.
    pub(crate) total: Duration,
}

impl TimingBreakdown {
    /// Appends the field to those of the origin.
    pub(crate) fn append_to(&self, headers: &mut HeaderMap) {
        let ms = |duration: Duration| format!("{:.1}", duration.as_secs_f64() * 1e3);
        let mut metrics = vec![format!("cache;desc=\"{}\"", self.outcome)];
        if let Some(origin) = self.origin {
            metrics.push(format!("origin;dur={}", ms(origin)));
        }
        if let Some(rewriting) = self.rewriting_ms {
            metrics.push(format!("rewrite;dur={rewriting:.1};desc=\"when stored\""));
        }
        metrics.push(format!("total;dur={}", ms(self.total)));
        let value =
            HeaderValue::try_from(metrics.join(", ")).expect("names and numbers are visible ASCII");
        headers.append(SERVER_TIMING, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_headers(values: &[&str]) -> HeaderMap {
        let values = values
            .iter()
            .map(|value| (SPDY_TIMING, value.parse().unwrap()));
        values.collect()
    }

    #[test]
    fn client_with_token_gets_timing_and_token_is_removed() {
        let timing = Timing {
            token: Some(Token::new("the token")),
        };
        for (values, gets_timing) in [
            (&["the token"][..], true),
            (&["another"], false),
            (&[], false),
            (&["the token", "the token"], false),
        ] {
            let mut headers = token_headers(values);
            assert_eq!(timing.take(&mut headers), gets_timing, "{values:?}");
            assert!(headers.is_empty(), "{values:?}");
        }
        let disabled = Timing::default();
        let mut headers = token_headers(&[""]);
        assert!(!disabled.take(&mut headers) && headers.is_empty());
        assert!(!timing.take(&mut HeaderMap::new()));
    }

    #[test]
    fn unknown_durations_are_omitted() {
        let header_value = |times: TimingBreakdown| {
            let mut headers = HeaderMap::new();
            times.append_to(&mut headers);
            headers[SERVER_TIMING].to_str().unwrap().to_owned()
        };
        let ms = Duration::from_micros;
        let miss = TimingBreakdown {
            outcome: "miss",
            origin: Some(ms(41_660)),
            rewriting_ms: None,
            total: ms(42_300),
        };
        assert_eq!(
            header_value(miss),
            "cache;desc=\"miss\", origin;dur=41.7, total;dur=42.3"
        );
        let hit = TimingBreakdown {
            outcome: "hit",
            origin: None,
            rewriting_ms: Some(3.1),
            total: ms(240),
        };
        assert_eq!(
            header_value(hit),
            "cache;desc=\"hit\", rewrite;dur=3.1;desc=\"when stored\", total;dur=0.2"
        );
    }
}
