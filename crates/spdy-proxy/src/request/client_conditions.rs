//! The client's cache fields: what it has, and how old an answer may be. Another host could recognize the client by them, so it does not
//! get them, and they are evaluated here.

use http::header::{self, HeaderName};
use http::{HeaderMap, StatusCode, response};
use spdy_cache::conditions;

use crate::fetch::origin_exchange::Fetch;
use crate::request::proxy_request::ProxyRequest;

/// Fields by which a client requests less than a whole answer, or sets conditions for a stored one.
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
    /// The fields of the request for the origin. For another host, these fields are removed, and only a single range is added again.
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
    /// Whether the range that arrived may be of another representation than the one the client has a part of: it then needs the whole.
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

    /// Applies the client's own conditions to an answer of another host, which did not get them; a stored answer is checked with them.
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
