//! Whether a client may make a request at all: over TLS only, from some addresses, at a limited rate. Checked before the lookup in the cache.

use std::borrow::Cow;
use std::net::IpAddr;

use http::request;
use spdy_clock::Instant;
use spdy_net::handler::RequestInfo;

use crate::request::client_origin::request_target;
use crate::request::rejection::RequestRejection;
use crate::sites::site::Site;

/// Checks the request with `head` for `authority`, which `client` made at `now`.
///
/// # Errors
///
/// The site is served over TLS only, or a rule of the path denies the request.
pub(crate) fn check(
    site: &Site,
    authority: &str,
    head: &request::Parts,
    client: Option<IpAddr>,
    now: Instant,
) -> Result<(), RequestRejection> {
    let target = request_target(head);
    let arrival = head.extensions.get::<RequestInfo>();
    if arrival.is_some_and(|arrival| !arrival.secure)
        && let Some(to) = site.https_url(authority, target)
    {
        return Err(RequestRejection::Insecure { to });
    }
    if site.named(authority).is_some() {
        return Ok(()); // an alias of another host has no paths of the site
    }
    site.paths.check_access(target, client, now)?;
    let rule = site
        .paths
        .of_origin(target)
        .filter(|rule| rule.origin().is_none());
    if let Some(Cow::Owned(at_origin)) = rule.map(|rule| rule.origin_target(target)) {
        site.paths.check_access(&at_origin, client, now)?;
    }
    Ok(())
}
