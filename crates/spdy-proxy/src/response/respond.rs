//! Builds the client's response: from a stored one, from one that is still arriving, or an error.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header, response};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_cache::body::Body as KeptBody;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::policy::Policy;
use spdy_cache::response;
use spdy_cache::response::{Payload, age_value};
use spdy_cache::stored::Stored;
use spdy_rewrite::response::rewritten_head;
use spdy_rewrite::response::sanitize_response;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;
use url::Url;

use crate::body::content_coding::Coding;
use crate::body::encoded_body::{encode_body, is_compressible};
use crate::body::range_body::cut_range;
use crate::body::shared_body::SharedBody;
use crate::body::stored_body::{self, BodyPart};
use crate::cache::encoded_bodies::{EncodedBodies, EncodedLookup};
use crate::cache::public_response::{PublicPage, is_html, is_public};
use crate::fetch::redirect_chain::RedirectChain;
use crate::request::forward_headers::{self, PROXY_STATUS};
use crate::request::proxy_request::{ProxyRequest, RequestRejection};
use crate::response::breach_guard;
use crate::rewrite::response_rewriter;
use crate::telemetry::counters::Outcome;
use crate::upstream::error::UpstreamError;
use crate::websocket::handshake::{self, HandshakeError};

/// The result of the check of a stored third-party response for `wanted`.
pub(crate) enum StoredCheck {
    /// It may be served.
    Allowed,
    /// The client gets this instead.
    Replaced(Box<Response<Body>>),
}

/// Checks a stored response of another host for `wanted`. A page may display resources that its scripts may not read. After redirects, each
/// host on the way must allow the use, under the current policies of the pages.
pub(crate) fn check_stored(wanted: &ProxyRequest, stored: &Stored) -> StoredCheck {
    let Some((moved, load)) = &wanted.moved else {
        return StoredCheck::Allowed;
    };
    let (site, load) = (&wanted.site, *load);
    let rules = &site.rules;
    let hops = RedirectChain::urls_from_note(stored.note());
    let guarded = |url: &Url| site.pages.guarded_kinds(rules, url);
    let led = match hops.is_empty() {
        true => Some(Cow::Borrowed(moved)), // most
        false => moved
            .after_redirects(rules, load, &hops, guarded)
            .map(Cow::Owned),
    };
    let Some(led) = led else {
        let answer = match load.is_subresource {
            true => sanitize_response::SanitizedResponse::Redirect(moved.url().to_string()),
            false => sanitize_response::SanitizedResponse::Refuse(Refusal::Location),
        };
        return StoredCheck::Replaced(Box::new(from_sanitized(moved, answer)));
    };
    match sanitize_response::sanitize(rules, &led, load, stored.status(), stored.headers()) {
        sanitize_response::SanitizedResponse::Serve(_) => StoredCheck::Allowed,
        other => StoredCheck::Replaced(Box::new(from_sanitized(moved, other))),
    }
}

/// The response that follows from the check of a moved resource.
pub(crate) fn from_sanitized(
    moved: &ProxiedUrl,
    answer: sanitize_response::SanitizedResponse,
) -> Response<Body> {
    match answer {
        sanitize_response::SanitizedResponse::Serve(headers) => {
            let mut response = plain(StatusCode::OK, "");
            *response.headers_mut() = headers;
            response
        }
        sanitize_response::SanitizedResponse::StatusOnly(status) => plain(status, ""),
        // For the page, an alias is another origin.
        sanitize_response::SanitizedResponse::Redirect(location) if moved.is_alias() => {
            with_outcome(redirect_cross_origin(&location), Outcome::REDIRECTED)
        }
        sanitize_response::SanitizedResponse::Redirect(location) => {
            with_outcome(redirect_to_host(&location), Outcome::REDIRECTED)
        }
        sanitize_response::SanitizedResponse::Refuse(refusal) => {
            with_outcome(refused(&refusal.into()), Outcome::REFUSED)
        }
    }
}

/// Adds the outcome of the request, for logs and counters. The first outcome stays.
pub(crate) fn with_outcome(mut response: Response<Body>, outcome: Outcome) -> Response<Body> {
    if response.extensions().get::<Outcome>().is_none() {
        response.extensions_mut().insert(outcome);
    }
    response
}

/// Redirects the client to the host itself.
pub(crate) fn redirect_to_host(location: &str) -> Response<Body> {
    let mut response = plain(StatusCode::TEMPORARY_REDIRECT, "");
    match HeaderValue::try_from(location) {
        Ok(location) => _ = response.headers_mut().insert(header::LOCATION, location),
        Err(_) => *response.status_mut() = StatusCode::NOT_FOUND,
    }
    response
}

/// The response to a rejected request. For the site's own resources it gives the reason. For a moved resource it states only the refusal,
/// and the reason is in the log.
pub(crate) fn refused(why: &RequestRejection) -> Response<Body> {
    match why {
        RequestRejection::Redirect { to, .. } => {
            with_outcome(redirect_cross_origin(to), Outcome::REDIRECTED)
        }
        RequestRejection::Handshake(HandshakeError::Version) => websocket_version(why),
        why => {
            let mut response = plain(why.status(), why.message());
            if response.status() == StatusCode::METHOD_NOT_ALLOWED {
                let allowed = HeaderValue::from_static("GET, HEAD");
                response.headers_mut().insert(header::ALLOW, allowed);
            }
            response
        }
    }
}

/// The response to OPTIONS with `Max-Forwards: 0`: the request is not forwarded (RFC 9110 §7.6.2).
pub(crate) fn options() -> Response<Body> {
    let mut response = plain(StatusCode::NO_CONTENT, "");
    let allowed = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
    let headers = response.headers_mut();
    headers.insert(header::ALLOW, HeaderValue::from_static(allowed));
    response
}

/// States the supported version of the protocol (RFC 6455 §4.4), and that an upgrade is required (RFC 9110 §15.5.22).
fn websocket_version(why: &RequestRejection) -> Response<Body> {
    let mut response = plain(why.status(), "");
    let headers = response.headers_mut();
    let version = HeaderValue::from_static(handshake::VERSION);
    headers.insert(header::SEC_WEBSOCKET_VERSION, version);
    handshake::set_upgrade_headers(headers);
    response
}

/// Redirects a page of another origin to the host itself. A resource that the page reads must be readable at each hop (Fetch, *CORS
/// check*). An embedder policy requires the same of other resources.
fn redirect_cross_origin(location: &str) -> Response<Body> {
    let mut response = redirect_to_host(location);
    let headers = response.headers_mut();
    let everyone = HeaderValue::from_static("*");
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, everyone);
    let shared = HeaderValue::from_static("cross-origin");
    headers.insert(sanitize_response::CROSS_ORIGIN_RESOURCE_POLICY, shared);
    response
}

/// The response to `wanted` when its origin could not be contacted, or did not respond. A page that loads another host's resource is
/// redirected to that host, so the browser gets what it would have got without the accelerator.
pub(crate) fn for_upstream_error(wanted: &ProxyRequest, error: &UpstreamError) -> Response<Body> {
    let moved = wanted.moved.as_ref();
    match moved.filter(|(_, load)| error.allows_redirect(*load)) {
        Some((moved, _)) => {
            let to = sanitize_response::SanitizedResponse::Redirect(moved.url().to_string());
            let mut response = from_sanitized(moved, to);
            let headers = response.headers_mut();
            headers.insert(PROXY_STATUS, error.proxy_status());
            response
        }
        None => with_outcome(bad_gateway(error), Outcome::UNREACHABLE),
    }
}

/// The response when an origin could not be contacted.
pub(crate) fn bad_gateway(error: &UpstreamError) -> Response<Body> {
    let is_busy = error.limit().is_some() || matches!(error, UpstreamError::Overloaded(_));
    let text = match error.status() {
        _ if error.limit().is_some() => "too many wait for the origin; try again soon\n",
        _ if is_busy => "the origin has too much to do; try again soon\n",
        StatusCode::GATEWAY_TIMEOUT => "the origin does not answer in time\n",
        StatusCode::SERVICE_UNAVAILABLE => "the origin failed too often; try again soon\n",
        _ if error.is_head_too_large() => "the origin answers with too large a head\n",
        _ if error.is_malformed_response() => "the origin gave no answer of HTTP, or half of one\n",
        _ => "the origin cannot be asked\n",
    };
    let mut response = plain(error.status(), text);
    let headers = response.headers_mut();
    if is_busy {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    headers.insert(PROXY_STATUS, error.proxy_status());
    response
}

/// A response of the accelerator's own.
pub(crate) fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if !text.is_empty() {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, kind);
    }
    response
}

/// The store of encoded bodies, and the runtime that encodes in the background.
pub(crate) type EncodingContext<'a> = (&'a Arc<EncodedBodies>, &'a SharedRuntime);

/// The response to `wanted` from a complete stored one.
pub(crate) fn from_stored(
    policy: &Policy,
    wanted: &ProxyRequest,
    stored: &Stored,
    body: &KeptBody,
    coder: EncodingContext<'_>,
    now: SystemTime,
    status: &CacheStatus,
) -> Response<Body> {
    let answer = response::answer(policy, stored, &wanted.ask, body.len(), now);
    let (mut head, payload) = (answer.head, answer.body);
    let is_not_modified = head.status == StatusCode::NOT_MODIFIED;
    let is_codable = || may_encode(stored.status(), stored.served(), Some(body.len()));
    // By the fields of the whole response: a 304 has only those that identify it.
    let is_coded_for_some =
        stored.memoized_check(is_codable) && !breach_guard::is_stored_per_client(wanted, stored);
    // A part has the `Vary` of the whole (RFC 9110 §15.3.7). A response without such a part has none.
    let is_part_of_coded = is_coded_for_some && head.status == StatusCode::PARTIAL_CONTENT;
    let is_whole = is_not_modified || head.status == stored.status();
    let is_coded_for_some = is_coded_for_some && is_whole;
    let coding = wanted.accepted_codings.shortest();
    let body = match payload {
        Payload::None => {
            if is_coded_for_some && coding != Coding::Identity {
                match is_not_modified {
                    true => forward_headers::weaken_etag(&mut head.headers),
                    false => set_content_encoding(&mut head, coding, None),
                }
            }
            Body::empty()
        }
        Payload::Whole if is_coded_for_some && coding != Coding::Identity => {
            let (encodings, runtime) = coder;
            match encodings.of(&wanted.key, body, coding, runtime) {
                EncodedLookup::Ready(coded) => {
                    set_content_encoding(&mut head, coding, Some(coded.len()));
                    stored_body::whole(&coded)
                }
                EncodedLookup::InProgress(coded) => {
                    set_content_encoding(&mut head, coding, None);
                    coded
                }
                EncodedLookup::Unavailable => stored_body::whole(body),
            }
        }
        Payload::Whole => stored_body::whole(body),
        Payload::Range(range) => stored_body::range(body, range),
        Payload::Multipart { parts, end } => {
            let parts = parts.into_iter();
            let parts =
                parts.flat_map(|(before, range)| [BodyPart::Text(before), BodyPart::Range(range)]);
            stored_body::read_parts(body, parts.chain([BodyPart::Text(end)]))
        }
    };
    if is_coded_for_some || is_part_of_coded {
        forward_headers::add_vary(&mut head.headers, "accept-encoding");
    }
    status.append_to(&mut head.headers);
    mark_public(stored, &mut head);
    Response::from_parts(head, body)
}

/// Marks `head`, the response from `stored`, if it is a public page, so that its view is counted.
fn mark_public(stored: &Stored, head: &mut response::Parts) {
    if is_html(stored.served()) && is_public(stored) {
        head.extensions.insert(PublicPage);
    }
}

/// The response to `wanted` while its body is still arriving; `None` if its beginning is gone. `own` is the full head for the request that
/// started the fetch. Other clients do not see its private fields.
pub(crate) fn from_shared_body(
    policy: &Policy,
    wanted: &ProxyRequest,
    stored: &Stored,
    own: Option<&HeaderMap>,
    recording: &SharedBody,
    now: SystemTime,
    status: &CacheStatus,
) -> Option<Response<Body>> {
    // The check of the client's conditions needs no length.
    let known = response::answer(policy, stored, &wanted.ask, 0, now);
    if known.head.status == StatusCode::NOT_MODIFIED {
        let mut head = known.head;
        let is_codable = may_encode(stored.status(), stored.served(), recording.expected_len())
            && !breach_guard::is_stored_per_client(wanted, stored);
        if is_codable {
            if wanted.accepted_codings.fastest() != Coding::Identity {
                forward_headers::weaken_etag(&mut head.headers);
            }
            forward_headers::add_vary(&mut head.headers, "accept-encoding");
        }
        if let Some(own) = own {
            add_private_fields(&mut head.headers, stored, own);
        }
        status.append_to(&mut head.headers);
        mark_public(stored, &mut head);
        return Some(Response::from_parts(head, Body::empty()));
    }
    let (mut head, ()) = Response::new(()).into_parts();
    mark_public(stored, &mut head);
    head.status = stored.status();
    head.headers = own.unwrap_or(stored.served()).clone();
    head.headers.insert(header::AGE, age_value(stored.age(now)));
    let mut body = recording.read()?;
    let is_for_all = !breach_guard::is_stored_per_client(wanted, stored);
    if let Some((headers, range)) = part(policy, wanted, &head, recording, now) {
        (head.status, head.headers) = (StatusCode::PARTIAL_CONTENT, headers);
        body = cut_range(body, range);
        if is_for_all && may_encode(stored.status(), stored.served(), recording.expected_len()) {
            forward_headers::add_vary(&mut head.headers, "accept-encoding");
        }
    }
    Some(streaming(wanted, head, body, is_for_all, status))
}

/// The requested part of a body that is still arriving, and its fields; `None` for the whole body, or if its length is unknown.
pub(crate) fn part(
    policy: &Policy,
    wanted: &ProxyRequest,
    head: &response::Parts,
    recording: &SharedBody,
    now: SystemTime,
) -> Option<(HeaderMap, Range<u64>)> {
    let len = recording
        .expected_len()
        .filter(|_| head.status == StatusCode::OK)?;
    response::part(policy, &head.headers, &wanted.ask, len, now)
}

/// Adds the fields of the origin's head `told` that only the client of this request may see.
pub(crate) fn add_private_fields(headers: &mut HeaderMap, stored: &Stored, told: &HeaderMap) {
    for name in stored.control().private_fields() {
        // A name may be listed twice.
        if !headers.contains_key(name) {
            let values = told.get_all(name).into_iter().cloned();
            headers.extend(values.map(|value| (name.clone(), value)));
        }
    }
}

/// A response with a streamed body. It is encoded if the client accepts a coding and it `is_for_all`.
pub(crate) fn streaming(
    wanted: &ProxyRequest,
    mut head: response::Parts,
    body: Body,
    is_for_all: bool,
    status: &CacheStatus,
) -> Response<Body> {
    let len = head.headers.get(header::CONTENT_LENGTH);
    let len = len.and_then(|len| len.to_str().ok()?.parse().ok());
    let is_coded_for_some = is_for_all && may_encode(head.status, &head.headers, len);
    let body = match wanted.accepted_codings.fastest() {
        _ if !is_coded_for_some => body,
        Coding::Identity => body,
        coding if wanted.ask.method == Method::HEAD => {
            set_content_encoding(&mut head, coding, None);
            body
        }
        coding => {
            set_content_encoding(&mut head, coding, None);
            encode_body(body, coding)
        }
    };
    if is_coded_for_some {
        forward_headers::add_vary(&mut head.headers, "accept-encoding");
    }
    status.append_to(&mut head.headers);
    Response::from_parts(head, body)
}

/// Whether a body of `len` bytes may be sent encoded to clients that accept a coding. Responses without a coding then also get `Vary`.
fn may_encode(status: StatusCode, headers: &HeaderMap, len: Option<u64>) -> bool {
    response_rewriter::is_displayed(status)
        && status != StatusCode::PARTIAL_CONTENT
        && is_compressible(headers, len)
        && !rewritten_head::has_no_transform(headers)
}

fn set_content_encoding(head: &mut response::Parts, coding: Coding, len: Option<u64>) {
    let headers = &mut head.headers;
    headers.insert(
        header::CONTENT_ENCODING,
        HeaderValue::from_static(coding.name()),
    );
    headers.remove(header::ACCEPT_RANGES);
    // These digests are of the uncoded bytes (RFC 9530 §2, §3).
    for digest in ["content-digest", "repr-digest", "digest", "content-md5"] {
        headers.remove(digest);
    }
    match len {
        Some(len) => headers.insert(header::CONTENT_LENGTH, len.into()),
        None => headers.remove(header::CONTENT_LENGTH),
    };
    forward_headers::weaken_etag(headers);
}
