//! Prepares requests for hyper's HTTP/1.1 client, and converts its responses and errors to the result of the exchange.

use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version, header, uri};
use http_body::Body as _;
use hyper::ext::ReasonPhrase;
use spdy::body::Body;
use spdy_net_core::error::{ExchangeError, Retry, error_chain};
use spdy_net_core::timing::progress_timeout::is_progress_timeout;

use crate::shims::hyper::head_size;

/// Bytes of a status line without the reason phrase: `HTTP/1.1 200 ` and CR LF.
const STATUS_LINE_OVERHEAD: usize = 15;
/// Smallest buffer that hyper accepts, bytes.
pub(super) const MIN_BUFFER_BYTES: usize = 8192;

/// Converts the target to origin form (except for CONNECT) and moves the host to a Host header (RFC 9112 §3.2).
pub(super) fn in_origin_form(request: Request<Body>) -> Result<Request<Body>, ExchangeError> {
    let (mut head, body) = request.into_parts();
    // Host becomes the first header, as RFC 9110 §7.2 recommends.
    let host = match head.headers.remove(header::HOST) {
        Some(host) => host,
        None => {
            let host = spdy_http::request::host_header(&head).unwrap_or_default();
            host.parse()
                .map_err(|_| ExchangeError::new(Retry::Never, format!("invalid host {host:?}")))?
        }
    };
    let mut headers = HeaderMap::with_capacity(head.headers.len() + 1);
    headers.insert(header::HOST, host);
    headers.extend(std::mem::take(&mut head.headers));
    if headers.contains_key(header::TE) {
        // It is about this connection (RFC 9110 §10.1.4).
        headers.append(header::CONNECTION, HeaderValue::from_static("te"));
    }
    head.headers = headers;
    if head.method != Method::CONNECT {
        let target = head
            .uri
            .path_and_query()
            .map_or("/", uri::PathAndQuery::as_str);
        let target = if target.is_empty() { "/" } else { target };
        head.uri = target.parse::<Uri>().map_err(|error| {
            ExchangeError::new(
                Retry::Never,
                format!("invalid request target {target:?}: {error}"),
            )
        })?;
    }
    head.version = Version::HTTP_11;
    Ok(Request::from_parts(head, body))
}

/// Declares the body of a GET or HEAD as chunked if its length is unknown. Otherwise hyper assumes that such a request has no body, and
/// does not send it (RFC 9112 §6.3).
pub(super) fn declare_body(mut request: Request<Body>) -> Request<Body> {
    let is_usually_empty = matches!(*request.method(), Method::GET | Method::HEAD);
    let body = request.body();
    if is_usually_empty && !body.is_end_stream() && has_no_length(request.headers(), body) {
        let chunked = HeaderValue::from_static("chunked");
        let headers = request.headers_mut();
        headers.insert(header::TRANSFER_ENCODING, chunked);
    }
    request
}

/// Fails if the head of `response` is larger than `max_head_bytes`. hyper enforces this limit only in part (`head_size.rs`).
pub(super) fn check_head_size<B>(
    response: &Response<B>,
    max_head_bytes: usize,
) -> Result<(), ExchangeError> {
    let reason = response.extensions().get::<ReasonPhrase>();
    let first_line = STATUS_LINE_OVERHEAD + reason.map_or(0, |reason| reason.as_bytes().len());
    match head_size::is_too_large(first_line, response.headers(), max_head_bytes) {
        true => Err(head_too_large(max_head_bytes)),
        false => Ok(()),
    }
}

fn head_too_large(max_head_bytes: usize) -> ExchangeError {
    ExchangeError::too_large(head_size::limit_message(max_head_bytes))
}

/// Converts `error`, and decides if the request may be retried. `is_unsent` is true if hyper returned the request because it had
/// not sent any of it.
pub(super) fn exchange_error(
    is_unsent: bool,
    error: &hyper::Error,
    max_head_bytes: usize,
) -> ExchangeError {
    if error.is_parse_too_large() {
        return head_too_large(max_head_bytes);
    }
    let message = format!("http/1.1: {}", error_chain(error));
    if is_unsent {
        return ExchangeError::unsent(message);
    }
    if is_progress_timeout(error) {
        return ExchangeError::write_timed_out(message);
    }
    // The server may close an idle connection at the same time as a request is sent on it, and such a request was not processed.
    let is_close_race = error.is_incomplete_message() || error.is_closed() || error.is_canceled();
    let retry = match is_close_race || is_io(error) {
        true => Retry::IfIdempotent,
        false => Retry::Never,
    };
    ExchangeError::new(retry, message)
}

fn is_io(error: &hyper::Error) -> bool {
    std::error::Error::source(error).is_some_and(<dyn std::error::Error>::is::<std::io::Error>)
}

/// True if the length of the body is unknown before it is sent.
pub(super) fn has_no_length(headers: &HeaderMap, body: &Body) -> bool {
    !headers.contains_key(header::CONTENT_LENGTH) && body.size_hint().exact().is_none()
}
