//! Builds responses that are no stored ones: redirects, refusals, errors, and streams.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header, response};
use spdy::body::Body;
use spdy_cache::cache_status::CacheStatus;
use spdy_cache::stored::Stored;
use spdy_rewrite::response::rewritten_head;
use spdy_rewrite::response::sanitize_response;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use crate::body::content_coding::Coding;
use crate::body::encoded_body::{encode_body, is_compressible, is_text};
use crate::request::forward_headers::{self, PROXY_STATUS};
use crate::request::proxy_request::ProxyRequest;
use crate::request::rejection::RequestRejection;
use crate::request::websocket_handshake::{self, HandshakeError};
use crate::rewrite::response_rewriter;
use crate::telemetry::counters::Outcome;
use crate::upstream::error::UpstreamError;

/// The name of this cache in `Cache-Status` and `Proxy-Status`.
pub(crate) const CACHE_NAME: &str = "spdy";

/// The response that follows from the check of a proxied resource.
pub(crate) fn from_sanitized(
    proxied: &ProxiedUrl,
    sanitized: sanitize_response::SanitizedResponse,
) -> Response<Body> {
    match sanitized {
        sanitize_response::SanitizedResponse::Serve(headers) => {
            let mut response = plain(StatusCode::OK, "");
            *response.headers_mut() = headers;
            response
        }
        sanitize_response::SanitizedResponse::StatusOnly(status) => plain(status, ""),
        // For the page, an alias is another origin.
        sanitize_response::SanitizedResponse::Redirect(location) if proxied.is_alias() => {
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

/// Marks a response with a message of the proxy itself, not of an origin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnMessage;

/// `response` with `page`, in HTML, in place of its message.
pub(crate) fn with_error_page(response: Response<Body>, page: Bytes) -> Response<Body> {
    let mut response = response.map(|_| Body::full(page));
    let html = HeaderValue::from_static("text/html; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, html);
    response.headers_mut().remove(header::CONTENT_LENGTH);
    response
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

/// The response to a rejected request. For the site's own resources it gives the reason. For a proxied resource it states only the refusal,
/// and the reason is in the log.
pub(crate) fn refused(rejection: &RequestRejection) -> Response<Body> {
    match rejection {
        RequestRejection::Redirect { to, .. } => {
            with_outcome(redirect_cross_origin(to), Outcome::REDIRECTED)
        }
        RequestRejection::Insecure { to } => {
            let mut response = plain(rejection.status(), "");
            if let Ok(location) = HeaderValue::try_from(to) {
                response.headers_mut().insert(header::LOCATION, location);
            }
            with_outcome(response, Outcome::REDIRECTED)
        }
        RequestRejection::Rate | RequestRejection::PasswordsBusy => {
            let mut response = plain(rejection.status(), rejection.message());
            let soon = HeaderValue::from_static("1");
            response.headers_mut().insert(header::RETRY_AFTER, soon);
            response
        }
        RequestRejection::Credentials { realm } => {
            let mut response = plain(rejection.status(), rejection.message());
            let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
            if let Ok(challenge) = HeaderValue::try_from(challenge) {
                let headers = response.headers_mut();
                headers.insert(header::WWW_AUTHENTICATE, challenge);
            }
            response
        }
        RequestRejection::Handshake(HandshakeError::Version) => websocket_version(rejection),
        rejection => {
            let mut response = plain(rejection.status(), rejection.message());
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
fn websocket_version(rejection: &RequestRejection) -> Response<Body> {
    let mut response = plain(rejection.status(), "");
    let headers = response.headers_mut();
    let version = HeaderValue::from_static(websocket_handshake::VERSION);
    headers.insert(header::SEC_WEBSOCKET_VERSION, version);
    websocket_handshake::set_upgrade_headers(headers);
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

/// The response to `request` when its origin could not be contacted, or did not respond. A page that loads another host's resource is
/// redirected to that host, so the browser gets what it would have got without the accelerator.
pub(crate) fn for_upstream_error(request: &ProxyRequest, error: &UpstreamError) -> Response<Body> {
    let proxied = request.proxied.as_ref();
    match proxied.filter(|(_, load)| error.allows_redirect(*load)) {
        Some((proxied, _)) => {
            let to = sanitize_response::SanitizedResponse::Redirect(proxied.url().to_string());
            let mut response = from_sanitized(proxied, to);
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
        _ if error.limit().is_some() => "too many requests wait for the origin; try again soon\n",
        _ if is_busy => "the origin is overloaded; try again soon\n",
        StatusCode::GATEWAY_TIMEOUT => "the origin did not respond in time\n",
        StatusCode::SERVICE_UNAVAILABLE => "the origin failed too often; try again soon\n",
        _ if error.is_head_too_large() => "the origin sent a response head that is too large\n",
        _ if error.is_malformed_response() => "the origin sent an invalid or incomplete response\n",
        _ => "the origin is unreachable\n",
    };
    let mut response = plain(error.status(), text);
    let headers = response.headers_mut();
    if is_busy {
        headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    headers.insert(PROXY_STATUS, error.proxy_status());
    response
}

/// The response to a gRPC call for which there are no resources (`RESOURCE_EXHAUSTED`), in the form of gRPC.
pub(crate) fn call_refused(message: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_TYPE, "application/grpc"),
        (HeaderName::from_static("grpc-status"), "8"),
        (HeaderName::from_static("grpc-message"), message),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
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
        if status.is_client_error() || status.is_server_error() {
            response.extensions_mut().insert(OwnMessage);
        }
    }
    response
}

/// Adds the fields of the origin's head `origin_headers` that only the client of this request may see.
pub(crate) fn add_private_fields(
    headers: &mut HeaderMap,
    stored: &Stored,
    origin_headers: &HeaderMap,
) {
    for name in stored.control().private_fields() {
        // A name may be listed twice.
        if !headers.contains_key(name) {
            let values = origin_headers.get_all(name).into_iter().cloned();
            headers.extend(values.map(|value| (name.clone(), value)));
        }
    }
}

/// A response with a streamed body. It is encoded if the client accepts a coding and it `is_for_all`.
pub(crate) fn streaming(
    request: &ProxyRequest,
    mut head: response::Parts,
    body: Body,
    is_for_all: bool,
    status: &CacheStatus,
) -> Response<Body> {
    let len = head.headers.get(header::CONTENT_LENGTH);
    let len = len.and_then(|len| len.to_str().ok()?.parse().ok());
    let is_coded_for_some = is_for_all && may_encode(head.status, &head.headers, len);
    let body = match request.accepted_codings.fastest() {
        _ if !is_coded_for_some => body,
        Coding::Identity => body,
        coding if request.head.method == Method::HEAD => {
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
pub(super) fn may_encode(status: StatusCode, headers: &HeaderMap, len: Option<u64>) -> bool {
    response_rewriter::is_displayed(status)
        && status != StatusCode::PARTIAL_CONTENT
        && is_compressible(headers, len)
        && !rewritten_head::has_no_transform(headers)
}

/// The coding of a body that its origin has coded, if it may be sent under another one to clients that accept it.
pub(super) fn recodable(status: StatusCode, headers: &HeaderMap) -> Option<Coding> {
    let coding = Coding::of(headers).filter(|coding| *coding != Coding::Identity)?;
    let may =
        status == StatusCode::OK && is_text(headers) && !rewritten_head::has_no_transform(headers);
    may.then_some(coding)
}

pub(super) fn set_content_encoding(head: &mut response::Parts, coding: Coding, len: Option<u64>) {
    let headers = &mut head.headers;
    headers.insert(
        header::CONTENT_ENCODING,
        HeaderValue::from_static(coding.name()),
    );
    headers.remove(header::ACCEPT_RANGES);
    set_other_bytes(head, len);
}

/// Changes `head` for a body of `len` bytes, if that is known, which has other bytes than the origin's and means the same.
pub(super) fn set_other_bytes(head: &mut response::Parts, len: Option<u64>) {
    let headers = &mut head.headers;
    headers.remove(header::TRAILER); // trailers are about the origin's bytes
    // So are these digests (RFC 9530 §2, §3).
    for digest in ["content-digest", "repr-digest", "digest", "content-md5"] {
        headers.remove(digest);
    }
    match len {
        Some(len) => headers.insert(header::CONTENT_LENGTH, len.into()),
        None => headers.remove(header::CONTENT_LENGTH),
    };
    forward_headers::weaken_etag(headers);
}
