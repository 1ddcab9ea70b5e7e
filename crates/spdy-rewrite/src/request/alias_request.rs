//! Builds the upstream request for a host with an alias.
//!
//! It is as anonymous as a request for a proxied path: no cookie and no credential is sent to the host. But the requesting page has
//! another origin than the host, or is a document of the host itself. The host must see which, or one could read resources of the
//! other. So Origin and Referer are sent with the values that the browser would have used without the alias.
//!
//! ```text
//!  page of the site      Origin: https://www.site.test          as it came
//!  document of the name  Origin: https://<label>.<zone>         the host's own origin
//!  sandboxed frame       Origin: null                           as it came, to read
//!  any other page        Origin: https://other.test             refused
//! ```
//!
//! A request without an Origin may read, as at the host itself. A request that could change something there is sent only for the
//! origins in the table.

use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, ORIGIN, REFERER};
use http::{Method, Request};
use url::Url;

use crate::kind::Kind;
use crate::limits::MAX_SCRIPT_HEADER_BYTES;
use crate::request::anonymize::{
    self, FetchMode, Load, SEC_FETCH_DEST, SEC_FETCH_MODE, SEC_FETCH_SITE, UpstreamRequest,
    check_body, check_upgrade, fetch_metadata, sends_referrer, single, value,
};
use crate::response::redirect::OPAQUE_ORIGIN;
use crate::rules::Rules;
use crate::rules::host_aliases::HostAlias;
use crate::rules::refusal::Refusal;
use crate::urls::proxied_url::ProxiedUrl;

/// Methods besides GET and HEAD that documents use, in forms and scripts.
const DOCUMENT_METHODS: [Method; 5] = [
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
];

/// Fields that a document's forms and scripts add to a request.
const DOCUMENT_HEADERS: [HeaderName; 4] = [
    CONTENT_TYPE,
    X_REQUESTED_WITH,
    HeaderName::from_static("access-control-request-method"),
    HeaderName::from_static("access-control-request-headers"),
];

/// Fields by which a document's scripts select the format of the response, for any method.
static SCRIPT_HEADERS: [HeaderName; 2] = [ACCEPT, X_REQUESTED_WITH];
const X_REQUESTED_WITH: HeaderName = HeaderName::from_static("x-requested-with");

/// Checks `request`, a request for `moved` on the alias `named`, and builds the request for the host.
///
/// # Errors
///
/// The violated rule.
pub fn request<B>(
    rules: &Rules,
    named: &HostAlias,
    moved: &ProxiedUrl,
    request: &Request<B>,
) -> Result<UpstreamRequest, Refusal> {
    let headers = request.headers();
    check_upgrade(headers)?;
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read {
        check_body(headers)?;
    } else if !moved.kinds().has(Kind::Document) || !DOCUMENT_METHODS.contains(request.method()) {
        let found = request.method().to_string();
        return Err(Refusal::Method { found });
    }
    let load = Load {
        is_safe_method: is_read,
        ..check_load(headers)?
    };
    if let Some(kind) = load.expected.filter(|kind| !moved.kinds().has(*kind)) {
        let host = moved.host().to_owned();
        return Err(Refusal::KindNotListed { kind, host });
    }
    let origin = requesting_origin(rules, named, headers, &ORIGIN, "origin")?;
    let page = requesting_origin(rules, named, headers, &REFERER, "referer")?;
    let has_requester = origin
        .as_ref()
        .is_some_and(|origin| origin != OPAQUE_ORIGIN);
    if !request.method().is_safe() && !has_requester {
        let method = request.method().to_string();
        return Err(Refusal::UnknownRequester { method });
    }
    let mut fresh = anonymize::fields(rules, moved, request, load.expected)?;
    if let Some(origin) = origin {
        fresh.insert(ORIGIN, value(&origin));
    }
    if let Some(page) =
        page.filter(|page| page != OPAQUE_ORIGIN && sends_referrer(rules, moved, headers))
    {
        fresh.insert(REFERER, value(&format!("{page}/")));
    }
    for name in script_headers(moved, load) {
        if let Some(header_value) = single(headers, name)
            .filter(|header_value| header_value.len() <= MAX_SCRIPT_HEADER_BYTES)
        {
            fresh.insert(name, header_value.clone());
        }
    }
    if !is_read {
        for name in DOCUMENT_HEADERS {
            if let Some(header_value) = single(headers, &name) {
                fresh.insert(name, header_value.clone());
            }
        }
    }
    Ok(UpstreamRequest {
        method: request.method().clone(),
        headers: fresh,
        load,
    })
}

/// The fields of a request for `moved` that a document's script sets, that are passed on, and that select the response.
pub fn script_headers(moved: &ProxiedUrl, load: Load) -> &'static [HeaderName] {
    let is_fetched = load.is_subresource && load.expected.is_none();
    match is_fetched && moved.kinds().has(Kind::Document) {
        true => &SCRIPT_HEADERS,
        false => &[],
    }
}

/// True if a browser is redirected to the host itself after `target` on an alias was refused with `reason`.
///
/// The host must have the resource, the resource must not be listed (or never be served on an alias), and Fetch Metadata must state
/// that the browser loads a subresource. Scripts of a document request more than its elements reference, and its links open pages.
pub fn is_sent_on(reason: &Refusal, target: &str, headers: &HeaderMap) -> bool {
    let is_of_host = match reason {
        Refusal::PathNotListed { .. }
        | Refusal::PathExcepted { .. }
        | Refusal::EncodedSlash { .. } => true,
        Refusal::WellKnown | Refusal::UnknownRequester { .. } => true,
        Refusal::KindNotListed { kind, .. } => !kind.needs_own_origin(),
        Refusal::TooLong { .. } => target.starts_with('/'),
        // Browsers write no backslash in a path, and parse one as a slash.
        Refusal::Backslash { at } => target.find('?').is_some_and(|query| query < *at),
        // From any other origin it would be an open redirect in the operator's zone.
        Refusal::Destination { found } if found == "document" => {
            return fetch_metadata(headers, SEC_FETCH_SITE) == Ok(Some("same-origin"));
        }
        _ => false,
    };
    is_of_host && check_load(headers).is_ok_and(|load| load.is_subresource)
}

fn check_load(headers: &HeaderMap) -> Result<Load, Refusal> {
    if headers.contains_key("service-worker") {
        return Err(Refusal::ServiceWorker);
    }
    let unwanted = |found: &str| Refusal::Destination {
        found: found.to_owned(),
    };
    let destination = fetch_metadata(headers, SEC_FETCH_DEST)?;
    let expected = match destination {
        None | Some("empty") => None,
        Some(destination) => {
            let kind = Kind::from_alias_destination(destination);
            Some(kind.ok_or_else(|| unwanted(destination))?)
        }
    };
    match fetch_metadata(headers, SEC_FETCH_MODE)? {
        None | Some("cors" | "no-cors" | "same-origin") => {}
        Some("navigate") if expected == Some(Kind::Document) => {}
        Some(other) => return Err(unwanted(other)),
    }
    let site = fetch_metadata(headers, SEC_FETCH_SITE)?;
    if site == Some("none") {
        return Err(unwanted("none"));
    }
    Ok(Load {
        expected,
        mode: match headers.contains_key(ORIGIN) {
            true => FetchMode::Cors,
            false => FetchMode::NoCors,
        },
        is_subresource: destination.is_some(),
        is_safe_method: true,
        is_same_origin: site == Some("same-origin"),
    })
}

/// The requesting origin, from a field with a URL or an origin, in the form for the host: the site, or the host itself.
fn requesting_origin(
    rules: &Rules,
    named: &HostAlias,
    headers: &HeaderMap,
    name: &HeaderName,
    field: &'static str,
) -> Result<Option<String>, Refusal> {
    if !headers.contains_key(name) {
        return Ok(None);
    }
    let header_value = single(headers, name).and_then(|value| value.to_str().ok());
    let header_value = header_value.ok_or(Refusal::Field { field })?;
    if header_value == OPAQUE_ORIGIN {
        return Ok(Some(header_value.to_owned()));
    }
    let url = Url::parse(header_value).map_err(|_| Refusal::Field { field })?;
    let origin = url.origin().ascii_serialization();
    let host = url.host_str().unwrap_or_default();
    if origin == named.origin() {
        return Ok(Some(named.original_origin()));
    }
    // A frame of one host with an alias may load from another.
    if let Some(other) = rules.named(host).filter(|other| other.origin() == origin) {
        return Ok(Some(other.original_origin()));
    }
    match rules.is_site_host(host) && matches!(url.scheme(), "https" | "http") {
        true => Ok(Some(origin)),
        false => Err(Refusal::CrossSite),
    }
}
