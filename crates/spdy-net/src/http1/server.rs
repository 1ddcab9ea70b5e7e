//! The server's side of HTTP/1.1.

use std::convert::Infallible;

use futures_util::future::{Either, select};
use http::uri::{self, Authority, Scheme};
use http::{HeaderValue, Request, Response, Uri, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net_core::error::ConnectionError;
use spdy_net_core::handler::{Handler, RequestInfo};
use spdy_net_core::network::BoxIo;
use spdy_net_core::protocol::Protocol;
use spdy_net_core::refusal::{Flaw, Refusal};
use spdy_net_core::serve_context::{ServeContext, end_requested};

use crate::http1::request_check::{
    HostError, flaw_of, is_chunked_at_most, is_too_large, request_host,
};
use crate::http1::send::{MIN_BUFFER_BYTES, has_no_length};
use crate::http1::upgrade::PendingUpgrade;
use crate::shims::hyper::head_timeout::{HeadTimeoutIo, TimedExchange};

const HOST_ADVICE: &str =
    "expected one Host: a name or an address, optionally with a port (RFC 9112 section 3.2)\n";
const TRANSFER_ENCODING_ADVICE: &str =
    "expected no Transfer-Encoding except chunked, once (RFC 9112 section 6.1)\n";

/// Serves `io` until it ends, or until the exchange after `stop`; then runs the protocol to which it was upgraded.
pub(crate) async fn serve(io: BoxIo, terms: ServeContext<'_>) -> Result<(), ConnectionError> {
    let ServeContext {
        secure,
        handler,
        options,
        runtime,
        stop,
    } = terms;
    let (io, clock) = HeadTimeoutIo::new(io, runtime.clone(), options);
    let seat = options.slot.clone();
    let max_head_bytes = options.max_head_bytes;
    let behind = PendingUpgrade::default();
    let next = behind.clone();
    let connection_handler = handler.clone();
    let service = service_fn(move |mut request: Request<Incoming>| {
        let exchange = seat.exchange();
        let handler = handler.clone();
        let offer = next.offer(&mut request);
        let timed = clock.request();
        async move {
            let (version, headers) = (request.version(), request.headers());
            let refused = |flaw| refused(&*handler, &request, flaw);
            let mut response = match request_host(version, headers) {
                Err(HostError) => refused(Flaw::Host),
                Ok(_) if !is_chunked_at_most(headers) => refused(Flaw::TransferCoding),
                Ok(_) if is_too_large(&request, max_head_bytes) => refused(Flaw::HeadTooLarge),
                Ok(host) => {
                    handler
                        .answer(build_request(request, host, secure, &timed))
                        .await
                }
            };
            let exchange = match offer {
                Some(offer) => match offer.accept(exchange, &mut response) {
                    Some(exchange) => exchange,
                    // The bytes after it are not a head: the code that takes the connection over has its own timeouts.
                    None => return Ok(response),
                },
                None => exchange,
            };
            // hyper would announce that the connection stays open after a body that only its end delimits (RFC 9112
            // §9.3).
            if version == Version::HTTP_10 && has_no_length(response.headers(), response.body()) {
                *response.version_mut() = Version::HTTP_10;
            }
            let response = response.map(|body| timed.response(body));
            Ok::<_, Infallible>(exchange.with(response))
        }
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        // `HeadTimeoutIo` implements this timeout, with the clock of the run.
        .header_read_timeout(None)
        .max_buf_size(options.max_head_bytes.max(MIN_BUFFER_BYTES))
        // A client that has sent its last request may close its half and still read.
        .half_close(true)
        // The site sets Date, with its own clock.
        .auto_date_header(false);
    let connection = builder.serve_connection(TokioIo::new(io), service);
    let connection = connection.with_upgrades();
    let mut connection = std::pin::pin!(connection);
    let ended = match select(connection.as_mut(), end_requested(options, stop)).await {
        Either::Left((ended, _)) => ended,
        Either::Right(((), _)) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Some(flaw) = ended.as_ref().err().and_then(flaw_of) {
        connection_handler.refused(&Refusal::unread(Protocol::Http1, flaw));
    }
    ended.map_err(|error| ConnectionError::Http1(error.into()))?;
    behind.run(stop).await;
    Ok(())
}

/// Builds the response to an invalid `request`, and reports the refusal to `handler`.
fn refused<B>(handler: &dyn Handler, request: &Request<B>, flaw: Flaw) -> Response<Body> {
    let advice = match flaw {
        Flaw::Host => HOST_ADVICE,
        Flaw::TransferCoding => TRANSFER_ENCODING_ADVICE,
        _ => "",
    };
    handler.refused(&Refusal {
        protocol: Protocol::Http1,
        method: Some(request.method()),
        uri: Some(request.uri()),
        headers: Some(request.headers()),
        body_bytes: advice.len() as u64,
        flaw,
    });
    let mut response = flaw.answer(advice);
    // The client's next request would probably be invalid too.
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}

/// Builds the request for handlers, with the requested `host`: an absolute URI, and the information about the connection.
fn build_request(
    request: Request<Incoming>,
    host: Option<Authority>,
    secure: bool,
    timed: &TimedExchange,
) -> Request<Body> {
    let (mut head, body) = request.into_parts();
    let arrival = RequestInfo {
        protocol: Protocol::Http1,
        secure,
        priority: Priority::HIGHEST,
    };
    head.extensions.insert(arrival);
    let uri = match host {
        Some(host) => absolute(&head.uri, host, secure),
        None => with_root_path(&head.uri),
    };
    if let Some(uri) = uri {
        head.uri = uri;
    }
    let body = match hyper::body::Body::is_end_stream(&body) {
        true => Body::empty(),
        false => timed.request_body(body),
    };
    Request::from_parts(head, body)
}

/// `uri` with scheme and host added, if it has none.
fn absolute(uri: &Uri, host: Authority, secure: bool) -> Option<Uri> {
    if uri.authority().is_some() {
        return with_root_path(uri); // absolute form, or CONNECT: unchanged
    }
    let mut parts = uri::Parts::default();
    parts.scheme = Some(if secure { Scheme::HTTPS } else { Scheme::HTTP });
    parts.authority = Some(host);
    parts.path_and_query = uri.path_and_query().cloned();
    Uri::from_parts(parts).ok()
}

/// An absolute `uri` whose path is empty before its query, which means the root (RFC 9110 §4.2.3), with `/` inserted; `None` if
/// that is not needed.
fn with_root_path(uri: &Uri) -> Option<Uri> {
    let target = uri.path_and_query()?.as_str();
    let rooted = target.starts_with('?').then(|| format!("/{target}"))?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = rooted.parse().ok();
    Uri::from_parts(parts).ok()
}
