//! What a client says to caches, of what it has and how patient it is: another host is told nothing of that, by which it might know the
//! client again, so what was meant is answered here.

use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode, response};
use spdy_cache::conditions;

use crate::fetch::origin_exchange::Fetch;
use crate::request::proxy_request::ProxyRequest;

/// Fields by which a client asks for less than an answer, or judges what is kept.
pub(crate) const CACHE_REQUEST_FIELDS: [HeaderName; 8] = [
    header::CACHE_CONTROL,
    header::PRAGMA,
    header::RANGE,
    header::IF_RANGE,
    header::IF_MATCH,
    header::IF_NONE_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_UNMODIFIED_SINCE,
];

impl ProxyRequest {
    /// The fields of the request for the origin: for another host without all that, but for a range, which is written anew.
    pub(crate) fn origin_headers(&self) -> HeaderMap {
        let mut headers = self.ask.headers.clone();
        if self.moved.is_some() {
            let range = conditions::single_range(&headers);
            for name in &CACHE_REQUEST_FIELDS {
                headers.remove(name);
            }
            if let Some(range) = range {
                headers.insert(header::RANGE, range);
            }
        }
        headers
    }
}

impl Fetch {
    /// Whether the part that came is of something else than the client has a part of, or may be: it then wants the whole.
    pub(crate) fn is_range_of_other_representation(
        &self,
        asked: &HeaderMap,
        head: &response::Parts,
    ) -> bool {
        if self.wanted.moved.is_none() || !asked.contains_key(header::RANGE) {
            return false;
        }
        let said = &self.wanted.ask.headers;
        match head.status {
            StatusCode::PARTIAL_CONTENT => {
                !conditions::range_holds(said, &head.headers, self.proxy.wall_now())
            }
            StatusCode::RANGE_NOT_SATISFIABLE => said.contains_key(header::IF_RANGE),
            _ => false,
        }
    }

    /// What a client gets by its own conditions, of which another host is not told; what is kept is judged with it.
    pub(crate) fn answer_client_conditions(
        &self,
        status: StatusCode,
        served: &HeaderMap,
        is_kept: bool,
    ) -> Option<response::Parts> {
        if self.wanted.moved.is_none() || !self.is_wanted_now {
            return None;
        }
        let said = &self.wanted.ask.headers;
        let head = conditions::conditional_response(said, status, served, self.proxy.wall_now());
        head.filter(|head| !is_kept || head.status == StatusCode::PRECONDITION_FAILED)
    }
}
