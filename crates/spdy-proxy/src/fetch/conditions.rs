//! Applies a client's conditions to the response of another host, which did not get them.

use http::{HeaderMap, StatusCode, header, response};
use spdy_cache::conditions;

use crate::fetch::fetch_state::{FetchPurpose, FetchState};

/// Whether the range in the response may be of another representation than the part that the client has. The client then needs all of it.
pub(crate) fn is_range_of_other_representation(
    fetch: &FetchState,
    sent_headers: &HeaderMap,
    head: &response::Parts,
) -> bool {
    if fetch.request.proxied.is_none() || !sent_headers.contains_key(header::RANGE) {
        return false;
    }
    let client_headers = &fetch.request.head.headers;
    match head.status {
        StatusCode::PARTIAL_CONTENT => !conditions::range_holds(
            client_headers,
            &head.headers,
            fetch.context.clock.wall_now(),
        ),
        StatusCode::RANGE_NOT_SATISFIABLE => client_headers.contains_key(header::IF_RANGE),
        _ => false,
    }
}

/// Applies the client's own conditions to a response of another host, which did not get them; a stored response is checked with them.
pub(crate) fn apply_client_conditions(
    fetch: &FetchState,
    status: StatusCode,
    served: &HeaderMap,
    is_storable: bool,
) -> Option<response::Parts> {
    if fetch.request.proxied.is_none() || fetch.purpose == FetchPurpose::Cache {
        return None;
    }
    let client_headers = &fetch.request.head.headers;
    let head = conditions::conditional_response(
        client_headers,
        status,
        served,
        fetch.context.clock.wall_now(),
    );
    head.filter(|head| !is_storable || head.status == StatusCode::PRECONDITION_FAILED)
}
