//! The origin at which a client has a site: the host that it named, and the scheme by which it connected.

use std::borrow::Cow;

use http::{header, request};
use spdy_net::handler::RequestInfo;

use crate::request::forward_headers;
use crate::sites::site::Site;

/// The host that a client named, with its port.
pub(crate) fn request_authority(head: &request::Parts) -> Option<&str> {
    match head.uri.authority() {
        Some(authority) => Some(authority.as_str()),
        None => head.headers.get(header::HOST)?.to_str().ok(),
    }
}

/// The origin at which a client has `site` that connected by `arrival` and named `authority`.
pub(crate) fn client_origin(
    site: &Site,
    arrival: Option<RequestInfo>,
    authority: &str,
) -> Option<url::Origin> {
    let scheme = match arrival {
        Some(_) => forward_headers::scheme_of(arrival),
        None => site.rules.site().scheme(),
    };
    let url = url::Url::parse(&format!("{scheme}://{authority}/"));
    url.ok().map(|url| url.origin())
}

/// The client's origin as text. Usually this does not parse a URL.
pub(crate) fn client_origin_text<'s>(
    site: &'s Site,
    arrival: Option<RequestInfo>,
    authority: &str,
) -> Option<Cow<'s, str>> {
    let public = site.rules.site_origin();
    match forward_headers::is_forwarded_origin(public, authority, arrival) {
        true => Some(Cow::Borrowed(public)),
        false => Some(Cow::Owned(
            client_origin(site, arrival, authority)?.ascii_serialization(),
        )),
    }
}

/// Path and query.
pub(crate) fn request_target(head: &request::Parts) -> &str {
    let target = head.uri.path_and_query();
    target.map_or("/", |target| target.as_str())
}
