//! Applies a client's conditions to the response of another host, which did not get them.

use http::{HeaderMap, StatusCode, header, response};
use spdy_cache::conditions;

use crate::fetch::origin_exchange::Fetch;

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
