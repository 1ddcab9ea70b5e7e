//! Whether the origin may identify the user of a request, so that its response may be for that user alone (RFC 9111 §3.5).

use http::{header, request};

/// In the extensions of a request: the origin may identify its user by something else than `Authorization`, such as the TLS certificate of
/// the client, or a field that a trusted proxy set. The cache treats the request as one with `Authorization`, in lookups, when it stores a
/// response, and when it merges one into a stored response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IdentifiedUser;

/// Whether the origin may identify the user of `request`.
#[must_use]
pub fn is_identified(request: &request::Parts) -> bool {
    request.headers.contains_key(header::AUTHORIZATION)
        || request.extensions.get::<IdentifiedUser>().is_some()
}
