//! Applies a client's conditions to the response of another host, which did not get them.

use http::{HeaderMap, StatusCode, header, response};
use spdy_cache::conditions;

use crate::fetch::fetch_state::{FetchPurpose, FetchState};

/// Whether the range that arrived may be of another representation than the one the client has a part of: it then needs the whole.
pub(crate) fn is_range_of_other_representation(
    fetch: &FetchState,
    asked: &HeaderMap,
    head: &response::Parts,
) -> bool {
    if fetch.wanted.moved.is_none() || !asked.contains_key(header::RANGE) {
        return false;
    }
    let said = &fetch.wanted.ask.headers;
    match head.status {
        StatusCode::PARTIAL_CONTENT => {
            !conditions::range_holds(said, &head.headers, fetch.context.clock.wall_now())
        }
        StatusCode::RANGE_NOT_SATISFIABLE => said.contains_key(header::IF_RANGE),
        _ => false,
    }
}

/// Applies the client's own conditions to an answer of another host, which did not get them; a stored answer is checked with them.
pub(crate) fn answer_client_conditions(
    fetch: &FetchState,
    status: StatusCode,
    served: &HeaderMap,
    is_kept: bool,
) -> Option<response::Parts> {
    if fetch.wanted.moved.is_none() || fetch.purpose == FetchPurpose::Cache {
        return None;
    }
    let said = &fetch.wanted.ask.headers;
    let head =
        conditions::conditional_response(said, status, served, fetch.context.clock.wall_now());
    head.filter(|head| !is_kept || head.status == StatusCode::PRECONDITION_FAILED)
}
