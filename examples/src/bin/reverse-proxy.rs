//! A reverse proxy: SPDY/3.1 from the clients, HTTP/1.1 to an origin.
//!
//! ```sh
//! cargo run --manifest-path examples/Cargo.toml --bin reverse-proxy -- 127.0.0.1:6121 127.0.0.1:8080
//! ```
//!
//! Bodies are streamed in both directions. A side that reads slowly slows the other side down: SPDY gives credit when the origin has
//! accepted the bytes, and the origin's socket is read when the client's window has room. A client that resets its stream ends the
//! origin's request. Each request has its own connection to the origin; the crate `spdy-client` has a pool.

use std::env;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::body::Body as _;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use spdy::{Body, BoxError, SharedRuntime, Version, server};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

/// Most sessions at once, and most requests at once in each of them.
const MAX_SESSIONS: usize = 1000;
const MAX_REQUESTS: u32 = 100;
const ACCEPT_DELAY: Duration = Duration::from_millis(100);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for the head of a response; an upload comes before the head.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(600);

/// Headers of one connection (RFC 9110 §7.6.1), in addition to those that `Connection` names. `Expect` is for a server with interim
/// responses, which SPDY does not have.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::EXPECT,
];

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [address, origin] = arguments.as_slice() else {
        return Err("usage: reverse-proxy ADDRESS ORIGIN_HOST:PORT".into());
    };
    let origin: Arc<str> = origin.as_str().into();
    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let permits = Arc::new(Semaphore::new(MAX_SESSIONS));
    loop {
        let permit = permits.clone().acquire_owned().await?;
        let Ok((socket, client)) = listener.accept().await else {
            // No free file descriptors, for example: requests that end free some.
            sleep(ACCEPT_DELAY).await;
            continue;
        };
        let origin = origin.clone();
        tokio::spawn(async move {
            // It fails if the client is already gone, which the session then reports.
            let _ = socket.set_nodelay(true);
            let builder = server::Builder::new(Version::V31).max_concurrent_streams(MAX_REQUESTS);
            let service = |request| respond(origin.clone(), client, request);
            if let Err(error) = builder.serve(socket, SharedRuntime::tokio(), service).await {
                eprintln!("{client}: {error}");
            }
            drop(permit);
        });
    }
}

/// The origin's response, or one that states why there is none.
async fn respond(origin: Arc<str>, client: SocketAddr, request: Request<Body>) -> Response<Body> {
    if request.method() == Method::CONNECT {
        return plain(
            StatusCode::METHOD_NOT_ALLOWED,
            "CONNECT is not supported\n".to_owned(),
        );
    }
    let target = request.uri().to_string();
    match forward(&origin, client, request).await {
        Ok(response) => response,
        Err((status, error)) => {
            eprintln!("{client}: {target}: {error}");
            plain(status, format!("{error}\n"))
        }
    }
}

fn plain(status: StatusCode, text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

type Failure = (StatusCode, BoxError);

async fn forward(
    origin: &str,
    client: SocketAddr,
    request: Request<Body>,
) -> Result<Response<Body>, Failure> {
    let bad_request = |error: http::Error| (StatusCode::BAD_REQUEST, error.into());
    let bad_gateway = |error: BoxError| (StatusCode::BAD_GATEWAY, error);
    let late = |error: tokio::time::error::Elapsed| (StatusCode::GATEWAY_TIMEOUT, error.into());

    let request = origin_request(client, request).map_err(bad_request)?;
    let head_timeout = if request.body().is_end_stream() {
        HEAD_TIMEOUT
    } else {
        UPLOAD_TIMEOUT
    };
    let socket = timeout(CONNECT_TIMEOUT, TcpStream::connect(origin))
        .await
        .map_err(late)?;
    let socket = socket
        .map_err(|error| bad_gateway(format!("cannot connect to {origin}: {error}").into()))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(socket))
        .await
        .map_err(|error| bad_gateway(error.into()))?;
    // It ends with the response's body, or when the body is dropped because the client has reset its stream.
    tokio::spawn(connection);
    let response = timeout(head_timeout, sender.send_request(request))
        .await
        .map_err(late)?;
    let (mut head, body) = response
        .map_err(|error| bad_gateway(error.into()))?
        .into_parts();
    remove_hop_by_hop(&mut head.headers);
    Ok(Response::from_parts(head, Body::wrap(body)))
}

/// The request for the origin: the target in origin form, the host as a header.
fn origin_request(
    client: SocketAddr,
    request: Request<Body>,
) -> Result<Request<Body>, http::Error> {
    let (mut head, body) = request.into_parts();
    remove_hop_by_hop(&mut head.headers);
    if let Some(host) = head.uri.authority() {
        head.headers
            .insert(header::HOST, HeaderValue::from_str(host.as_str())?);
    }
    let forwarded_for = HeaderValue::from_str(&client.ip().to_string())?;
    head.headers
        .append(HeaderName::from_static("x-forwarded-for"), forwarded_for);
    head.uri = head
        .uri
        .path_and_query()
        .map_or("/", |target| target.as_str())
        .parse::<Uri>()?;
    Ok(Request::from_parts(head, body))
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}
