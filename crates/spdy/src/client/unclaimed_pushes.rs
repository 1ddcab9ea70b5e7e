//! Pushes that no request has claimed yet (SPDY/3.1 §3.3).
//!
//! ```text
//! SYN_STREAM --checked-> unclaimed --a request for the same URL-> its response
//!     |                     |----- take_pushes ----------------> the caller
//!     | refused             `----- too old, too many bytes, the session drains: CANCEL
//! ```
//!
//! A push was made for the page's own request. So another request claims it only if the server would send it the same response: a
//! GET of that URL, without body, range or condition, and with the page's values in every header that selects a response
//! ([`SELECTING_HEADERS`](crate::client::SELECTING_HEADERS), and the names in `Vary`). Until then pushed DATA is not read, so the
//! peer gets no further credit.

use std::sync::Arc;

use http::header::{self, HeaderMap, HeaderName};
use http::{Method, Request, Uri};
use spdy_clock::Instant;
use spdy_frame::status::RstStatus;
use spdy_frame::version::Version;
use spdy_http::push::decode_response;
use spdy_session::limit::Limit;

use crate::error::Error;
use crate::session::entry::{Entry, Inbound, Opening};
use crate::session::push_parent::PushParent;
use crate::session::state::State;

/// Request headers that make the response differ from that to a plain GET.
const CONDITIONS: [HeaderName; 6] = [
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

/// The key by which pushes and requests match: the URL with a lower-case host and without a default port.
pub(crate) fn url_key(uri: &Uri) -> String {
    let scheme = uri.scheme_str().unwrap_or_default();
    let host = uri.host().unwrap_or_default().to_ascii_lowercase();
    let default = match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    };
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    match uri.port_u16().filter(|port| Some(*port) != default) {
        Some(port) => format!("{scheme}://{host}:{port}{path}"),
        None => format!("{scheme}://{host}{path}"),
    }
}

/// True if a push could answer this request.
pub(crate) fn may_claim<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET
        && !CONDITIONS
            .iter()
            .any(|name| request.headers().contains_key(name))
}

impl State {
    /// True if a valid push for `uri` may wait for a request.
    pub(crate) fn may_wait(&mut self, uri: &Uri) -> bool {
        let Some(claims) = &self.claims else {
            return true;
        };
        let url = url_key(uri);
        // The requested response is already pending: a second copy is useless.
        let is_requested = |entry: &Entry| {
            let request = entry.push_parent.as_ref();
            !entry.is_done() && request.is_some_and(|request| url_key(&request.uri) == url)
        };
        if claims.by_url.contains_key(&url)
            || self.entries.iter().any(|(_, entry)| is_requested(entry))
        {
            return false;
        }
        let has_room = claims.by_url.len() < claims.limits.streams as usize;
        if !has_room {
            self.machine.count(Limit::UnclaimedPushes);
        }
        has_room
    }

    /// Adds the push `key` to the unclaimed pushes.
    pub(crate) fn wait_for_claim(&mut self, key: usize) {
        let now = self.machine.now();
        let promise = |opening: &Opening| Some(url_key(&opening.promise.as_ref()?.request.uri));
        let url = self.entries[key].opening.as_deref().and_then(promise);
        if let (Some(claims), Some(url)) = (&mut self.claims, url) {
            claims
                .order
                .push_back((now + claims.limits.claim_timeout, key));
            claims.by_url.insert(url, key);
            claims.stats.accepted += 1;
        }
    }

    /// Counts DATA of the push `key`, if it is unclaimed.
    pub(crate) fn count_unclaimed(&mut self, key: usize, bytes: usize) {
        let half_a_session = self.machine.config().session_window_size() as usize / 2;
        let Some(claims) = self.claims.as_mut().filter(|claims| claims.holds(key)) else {
            return;
        };
        claims.bytes += bytes;
        if claims.bytes > claims.limits.bytes.min(half_a_session) {
            self.machine.count(Limit::UnclaimedBytes);
            self.cancel_unclaimed(key);
        }
    }

    /// Removes the stream `key` from the unclaimed pushes, if it is one.
    pub(crate) fn remove_unclaimed(&mut self, key: usize) {
        if let Some(claims) = self.claims.as_mut().filter(|claims| claims.holds(key)) {
            claims.order.retain(|(_, waiting)| *waiting != key);
            claims.by_url.retain(|_, waiting| *waiting != key);
            claims.bytes -= self.entries[key].unread_bytes;
        }
    }

    /// Cancels the push `key`, which no request claimed.
    fn cancel_unclaimed(&mut self, key: usize) {
        self.remove_unclaimed(key);
        let entry = &self.entries[key];
        let (id, status) = (entry.id, RstStatus::CANCEL);
        if !entry.is_done() {
            self.reset(key, status, Error::ResetByUs { id, status });
        }
        self.drop_unread(key);
        self.detach(key);
        // No task waits for it, so no waker is dropped with it.
        drop(self.entries.remove(key));
        if let Some(claims) = &mut self.claims {
            claims.stats.cancelled += 1;
        }
    }

    /// Cancels pushes that were not claimed in time.
    pub(crate) fn cancel_expired(&mut self, now: Instant) {
        while let Some((until, key)) = self.first_unclaimed()
            && until <= now
        {
            self.machine.count(Limit::UnclaimedTimeout);
            self.cancel_unclaimed(key);
        }
    }

    /// Cancels all unclaimed pushes, because no request can claim them any more.
    pub(crate) fn cancel_all_unclaimed(&mut self) {
        while let Some((_, key)) = self.first_unclaimed() {
            self.cancel_unclaimed(key);
        }
    }

    fn first_unclaimed(&self) -> Option<(Instant, usize)> {
        self.claims.as_ref()?.order.front().copied()
    }

    /// The push that answers a GET of `uri` with `headers`, if there is one. Returns its key, for one handle.
    pub(crate) fn claim(
        &mut self,
        version: Version,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<usize> {
        let key = *self.claims.as_ref()?.by_url.get(&url_key(uri))?;
        let entry = &self.entries[key];
        let opening = entry.opening.as_ref()?;
        let page = opening.parent.as_ref()?;
        let promise = opening.promise.as_ref()?;
        // In the two-block form the head follows in HEADERS; if it has arrived, it is checked without being removed.
        let second = match entry.inbound.front() {
            Some(Inbound::Headers(block)) if promise.response.is_none() => {
                Some(decode_response(version, block).ok()?)
            }
            _ => None,
        };
        let response = promise.response.as_ref().or(second.as_ref());
        let response = response.map(|response| (response.status, &response.headers));
        if !page.is_same_response(headers, response) {
            return None;
        }
        self.remove_unclaimed(key);
        let entry = &mut self.entries[key];
        entry.handles = 1;
        entry.push_parent = Some(Arc::new(PushParent {
            uri: uri.clone(),
            headers: HeaderMap::new(),
        }));
        self.machine.widen_window(self.entries[key].id);
        if let Some(claims) = &mut self.claims {
            claims.stats.claimed += 1;
        }
        Some(key)
    }

    /// Takes all unclaimed pushes, in order of arrival. Returns their keys, for one handle each.
    pub(crate) fn take_unclaimed(&mut self) -> Vec<usize> {
        let mut keys = Vec::new();
        while let Some((_, key)) = self.first_unclaimed() {
            self.remove_unclaimed(key);
            self.entries[key].handles = 1;
            self.machine.widen_window(self.entries[key].id);
            keys.push(key);
        }
        keys
    }

    /// When the driver has work even if no event arrives.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let expiry = self.first_unclaimed().map(|(until, _)| until);
        self.machine.poll_timeout().into_iter().chain(expiry).min()
    }

    /// Counts a refused push.
    pub(crate) fn refused_push(&mut self) {
        if let Some(claims) = &mut self.claims {
            claims.stats.refused += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            let value = http::HeaderValue::from_static(value);
            (HeaderName::from_static(name), value)
        };
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn a_url_key_ignores_the_case_of_the_host_and_the_default_port() {
        let key = |uri: &str| url_key(&uri.parse().unwrap());
        assert_eq!(
            key("https://Example.org:443/a?b"),
            key("https://example.org/a?b")
        );
        for other in [
            "https://example.org/a",
            "http://example.org/a?b",
            "https://example.org:444/a?b",
            "https://example.org/A?b",
        ] {
            assert_ne!(key(other), key("https://example.org/a?b"));
        }
    }

    #[test]
    fn ranges_conditions_and_other_methods_claim_nothing() {
        let request = |method: Method, headers: HeaderMap| {
            let mut request = Request::new(());
            *request.method_mut() = method;
            *request.headers_mut() = headers;
            may_claim(&request)
        };
        assert!(request(Method::GET, headers(&[("accept", "*/*")])));
        assert!(!request(Method::HEAD, headers(&[])));
        for (name, value) in [
            ("range", "bytes=0-1"),
            ("if-none-match", "\"a\""),
            ("if-modified-since", "x"),
        ] {
            assert!(!request(Method::GET, headers(&[(name, value)])), "{name}");
        }
    }
}
