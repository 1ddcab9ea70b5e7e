//! The client's cache fields: what it has, and how old a response may be. Another host could recognize the client by them, so it does not
//! get them, and they are evaluated here.

use http::HeaderMap;
use http::header::{self, HeaderName};
use spdy_cache::conditions;

/// Fields by which a client requests less than a full response, or sets conditions for a stored one.
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

/// Removes these fields, and only adds a single range again.
pub(crate) fn keep_single_range(headers: &mut HeaderMap) {
    let range = conditions::single_range(headers);
    for name in &CACHE_REQUEST_FIELDS {
        headers.remove(name);
    }
    if let Some(range) = range {
        headers.insert(header::RANGE, range);
    }
}
