//! Builds a client's response from a stored one, or from one that is still arriving.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use http::{HeaderMap, Response, StatusCode, header, response};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_cache::body::Body as CacheBody;
use spdy_cache::cache_status::{CacheStatus, Forward};
use spdy_cache::memory_store::Object;
use spdy_cache::policy::Policy;
use spdy_cache::response::{Payload, age_value};
use spdy_cache::stored::Stored;
use spdy_rewrite::response::sanitize_response;
use spdy_rewrite::rules::refusal::Refusal;
use url::Url;

use crate::body::content_coding::Coding;
use crate::body::range_body::cut_range;
use crate::body::shared_body::SharedBody;
use crate::body::stored_body::{self, BodyPart};
use crate::cache::encoded_bodies::{EncodedBodies, EncodedLookup};
use crate::cache::public_response::{PublicPage, is_html, is_public};
use crate::cache::recompressor::Recompression;
use crate::cache::shared_response::{SharedBodySource, SharedResponse};
use crate::cache::tiers::Cache;
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;
use crate::response::breach_guard;
use crate::response::image_variant;
use crate::response::redirect_chain::RedirectChain;
use crate::response::respond::{self, CACHE_NAME};
use crate::rewrite::page_text;
use crate::sites::page_policies::PagePolicy;

/// A stored text is recompressed if it is fresh for at least this long, seconds: a result of seconds of work is sent for as long.
const MIN_RECOMPRESSED_TTL_S: i64 = 600;

/// The result of the check of a stored third-party response for `request`.
pub(crate) enum StoredCheck {
    /// It may be served.
    Allowed,
    /// The client gets this instead.
    Replaced(Box<Response<Body>>),
}

/// Checks a stored response of another host for `request`. A page may display resources that its scripts may not read. After redirects, each
/// host on the way must allow the use, under the current policies of the pages.
pub(crate) fn check_stored(request: &ProxyRequest, stored: &Stored) -> StoredCheck {
    let Some((proxied, load)) = &request.proxied else {
        return StoredCheck::Allowed;
    };
    let (site, load) = (&request.site, *load);
    let rules = &site.rules;
    let hops = RedirectChain::urls_from_note(stored.note());
    let guarded = |url: &Url| site.pages.guarded_kinds(rules, url);
    let led = match hops.is_empty() {
        true => Some(Cow::Borrowed(proxied)), // most
        false => proxied
            .after_redirects(rules, load, &hops, guarded)
            .map(Cow::Owned),
    };
    let Some(led) = led else {
        let replacement = match load.is_subresource {
            true => sanitize_response::SanitizedResponse::Redirect(proxied.url().to_string()),
            false => sanitize_response::SanitizedResponse::Refuse(Refusal::Location),
        };
        return StoredCheck::Replaced(Box::new(respond::from_sanitized(proxied, replacement)));
    };
    match sanitize_response::sanitize(rules, &led, load, stored.status(), stored.headers()) {
        sanitize_response::SanitizedResponse::Serve(_) => StoredCheck::Allowed,
        other => StoredCheck::Replaced(Box::new(respond::from_sanitized(proxied, other))),
    }
}

/// The response to `request` from a stored object of `cache`.
pub(crate) fn respond_hit(
    cache: &Cache,
    request: &ProxyRequest,
    object: &Object,
    now: SystemTime,
) -> Response<Body> {
    object.count_use();
    let status = CacheStatus::hit(CACHE_NAME).ttl(object.stored().ttl(now));
    respond_stored(cache, request, object.stored(), object.body(), now, &status)
}

/// The response to `request` from a stored head and body, unless the checks of `request` require another.
pub(crate) fn respond_stored(
    cache: &Cache,
    request: &ProxyRequest,
    stored: &Stored,
    body: &CacheBody,
    now: SystemTime,
    status: &CacheStatus,
) -> Response<Body> {
    match check_stored(request, stored) {
        StoredCheck::Replaced(response) => *response,
        StoredCheck::Allowed => {
            request.record_policy(PagePolicy::parse_note(stored.note()));
            let policy = cache.policy(request.origin_kind());
            let coder = (&cache.encoded_bodies, &cache.clock.runtime);
            from_stored(policy, request, stored, body, coder, now, status)
        }
    }
}

/// The response to `request` from one that another request fetched.
pub(crate) fn respond_shared(
    cache: &Cache,
    request: &ProxyRequest,
    shared: &SharedResponse,
    now: SystemTime,
    forward: Forward,
) -> Option<Response<Body>> {
    let status = CacheStatus::forwarded(CACHE_NAME, forward).collapsed(true);
    if let StoredCheck::Replaced(response) = check_stored(request, &shared.stored) {
        return Some(*response);
    }
    match &shared.source {
        SharedBodySource::Incoming(recording) => from_shared_body(
            cache,
            request,
            &shared.stored,
            None,
            recording,
            now,
            &status,
        ),
        SharedBodySource::Stored(object) => {
            let stored = &shared.stored;
            Some(respond_stored(
                cache,
                request,
                stored,
                object.body(),
                now,
                &status,
            ))
        }
    }
}

/// The store of encoded bodies, and the runtime that encodes in the background.
pub(crate) type EncodingContext<'a> = (&'a Arc<EncodedBodies>, &'a SharedRuntime);

/// The response to `request` from a complete stored one.
pub(crate) fn from_stored(
    policy: &Policy,
    request: &ProxyRequest,
    stored: &Stored,
    body: &CacheBody,
    coder: EncodingContext<'_>,
    now: SystemTime,
    status: &CacheStatus,
) -> Response<Body> {
    let (encodings, runtime) = coder;
    let kinds = encodings.recompressed_kinds();
    let image = image_variant::convertible(kinds.images, stored, Some(body.len()));
    let webp =
        image.filter(|format| image_variant::accepts_webp(request.client_headers(), *format));
    let parts = spdy_cache::response::answer(policy, stored, &request.head, body.len(), now);
    let (mut head, payload) = (parts.head, parts.body);
    let is_not_modified = head.status == StatusCode::NOT_MODIFIED;
    let is_codable = || respond::may_encode(stored.status(), stored.served(), Some(body.len()));
    // By the fields of the whole response: a 304 has only those that identify it.
    let is_coded_for_some =
        stored.memoized_check(is_codable) && !breach_guard::is_stored_per_client(request, stored);
    // A part has the `Vary` of the whole (RFC 9110 §15.3.7). A response without such a part has none.
    let is_part_of_coded = is_coded_for_some && head.status == StatusCode::PARTIAL_CONTENT;
    let is_full = is_not_modified || head.status == stored.status();
    let is_coded_for_some = is_coded_for_some && is_full;
    let coding = request.accepted_codings.shortest();
    // A body that its origin has coded may be sent smaller.
    let origin_coding = match kinds.texts {
        true => respond::recodable(stored.status(), stored.served()).filter(|_| is_public(stored)),
        false => None,
    };
    let is_lasting = || stored.ttl(now) >= MIN_RECOMPRESSED_TTL_S;
    let recompression = match (origin_coding, webp) {
        (Some(origin_coding), _) if coding == Coding::Brotli => {
            Some(Recompression::Text(origin_coding))
        }
        (None, Some(format)) => Some(Recompression::Image(format)),
        _ => None,
    };
    let small = match (&payload, recompression) {
        (_, Some(_)) if !is_full => None,
        (Payload::Whole, Some(recompression)) if is_lasting() => {
            encodings.smallest(&request.key, body, recompression)
        }
        (Payload::Whole | Payload::None, Some(recompression)) => {
            encodings.made_smallest(&request.key, body, recompression)
        }
        _ => None,
    };
    let set_small = |head: &mut response::Parts, len: u64| match webp {
        Some(_) => image_variant::set_webp(head, len),
        None => respond::set_content_encoding(head, coding, Some(len)),
    };
    let body = match payload {
        Payload::None => {
            if let Some(small) = &small {
                match is_not_modified {
                    true => forward_headers::weaken_etag(&mut head.headers),
                    false => set_small(&mut head, small.len()),
                }
            }
            if is_coded_for_some && coding != Coding::Identity {
                match is_not_modified {
                    true => forward_headers::weaken_etag(&mut head.headers),
                    false => respond::set_content_encoding(&mut head, coding, None),
                }
            }
            Body::empty()
        }
        Payload::Whole if is_coded_for_some && coding != Coding::Identity => {
            match encodings.of(&request.key, body, coding, is_lasting(), runtime) {
                EncodedLookup::Ready(coded) => {
                    respond::set_content_encoding(&mut head, coding, Some(coded.len()));
                    stored_body::read_all(&coded)
                }
                EncodedLookup::InProgress(coded) => {
                    respond::set_content_encoding(&mut head, coding, None);
                    coded
                }
                EncodedLookup::Unavailable => stored_body::read_all(body),
            }
        }
        Payload::Whole if small.is_some() => {
            let small = small.unwrap_or_default();
            set_small(&mut head, small.len());
            stored_body::read_all(&small)
        }
        Payload::Whole => stored_body::read_all(body),
        Payload::Range(range) => stored_body::range(body, range),
        Payload::Multipart { parts, end } => {
            let parts = parts.into_iter();
            let parts =
                parts.flat_map(|(before, range)| [BodyPart::Text(before), BodyPart::Range(range)]);
            stored_body::read_parts(body, parts.chain([BodyPart::Text(end)]))
        }
    };
    if is_coded_for_some || is_part_of_coded || origin_coding.is_some() {
        forward_headers::add_vary(&mut head.headers, "accept-encoding");
    }
    if image.is_some() {
        forward_headers::add_vary(&mut head.headers, "accept");
    }
    status.append_to(&mut head.headers);
    mark_public(request, stored, &mut head);
    Response::from_parts(head, body)
}

/// Marks `head`, the response from `stored`, if it is a public page, so that its view is counted.
pub(crate) fn mark_public(request: &ProxyRequest, stored: &Stored, head: &mut response::Parts) {
    if is_html(stored.served()) && is_public(stored) {
        let variant = stored.variant_of(&request.head.headers);
        let text = page_text::id_of(stored.note()).map(str::to_owned);
        head.extensions.insert(PublicPage { variant, text });
    }
}

/// The response to `request` while its body is still arriving; `None` if its beginning is gone. `own` is the full head for the request that
/// started the fetch. Other clients do not see its private fields.
pub(crate) fn from_shared_body(
    cache: &Cache,
    request: &ProxyRequest,
    stored: &Stored,
    own: Option<&HeaderMap>,
    recording: &SharedBody,
    now: SystemTime,
    status: &CacheStatus,
) -> Option<Response<Body>> {
    let policy = cache.policy(request.origin_kind());
    let conversion = cache.encoded_bodies.recompressed_kinds().images;
    let image = image_variant::convertible(conversion, stored, recording.expected_len());
    // The check of the client's conditions needs no length.
    let conditional = spdy_cache::response::answer(policy, stored, &request.head, 0, now);
    if conditional.head.status == StatusCode::NOT_MODIFIED {
        let mut head = conditional.head;
        let is_codable =
            respond::may_encode(stored.status(), stored.served(), recording.expected_len())
                && !breach_guard::is_stored_per_client(request, stored);
        if is_codable {
            if request.accepted_codings.fastest() != Coding::Identity {
                forward_headers::weaken_etag(&mut head.headers);
            }
            forward_headers::add_vary(&mut head.headers, "accept-encoding");
        }
        if image.is_some() {
            forward_headers::add_vary(&mut head.headers, "accept");
        }
        if let Some(own) = own {
            respond::add_private_fields(&mut head.headers, stored, own);
        }
        status.append_to(&mut head.headers);
        mark_public(request, stored, &mut head);
        return Some(Response::from_parts(head, Body::empty()));
    }
    let (mut head, ()) = Response::new(()).into_parts();
    mark_public(request, stored, &mut head);
    head.status = stored.status();
    head.headers = own.unwrap_or(stored.served()).clone();
    head.headers.insert(header::AGE, age_value(stored.age(now)));
    if image.is_some() {
        forward_headers::add_vary(&mut head.headers, "accept");
    }
    let mut body = recording.read()?;
    let is_for_all = !breach_guard::is_stored_per_client(request, stored);
    if let Some((headers, range)) = part(policy, request, &head, recording, now) {
        (head.status, head.headers) = (StatusCode::PARTIAL_CONTENT, headers);
        body = cut_range(body, range);
        if is_for_all
            && respond::may_encode(stored.status(), stored.served(), recording.expected_len())
        {
            forward_headers::add_vary(&mut head.headers, "accept-encoding");
        }
    }
    Some(respond::streaming(request, head, body, is_for_all, status))
}

/// The requested part of a body that is still arriving, and its fields; `None` for the whole body, or if its length is unknown.
pub(crate) fn part(
    policy: &Policy,
    request: &ProxyRequest,
    head: &response::Parts,
    recording: &SharedBody,
    now: SystemTime,
) -> Option<(HeaderMap, Range<u64>)> {
    let len = recording
        .expected_len()
        .filter(|_| head.status == StatusCode::OK)?;
    spdy_cache::response::part(policy, &head.headers, &request.head, len, now)
}
