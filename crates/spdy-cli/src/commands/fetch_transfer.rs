//! One URL of `spdy fetch`: its redirects, the output of its body, and its report.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri, header};
use http_body_util::BodyExt;
use serde::Serialize;
use sha2::{Digest, Sha256};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_client::client::Client;
use spdy_client::origin::Origin;
use spdy_client::route::Route;
use spdy_client::timing::Timings;
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::commands::fetch_push::PushReport;
use crate::printer::Printer;

/// Where a body goes.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
    /// As a file; one that is there stays as it is.
    NewFile(PathBuf),
    Nowhere,
}

/// What is to be fetched, and how.
#[derive(Clone, Debug)]
pub(crate) struct FetchRequest {
    pub(crate) url: Uri,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Redirects that may be followed.
    pub(crate) redirects: usize,
    /// The head of the response is a result too.
    pub(crate) print_head: bool,
    pub(crate) destination: Destination,
}

/// What came of it: a line of `--json`.
#[derive(Debug, Default, Serialize)]
pub(crate) struct FetchResult {
    /// As it was asked for.
    pub(crate) url: String,
    /// Where redirects led, if they did.
    #[serde(skip_serializing_if = "Option::is_none")]
    final_url: Option<String>,
    pub(crate) status: Option<u16>,
    protocol: Option<&'static str>,
    connection: Option<usize>,
    address: Option<String>,
    /// Version of TLS, and whether an earlier session was resumed.
    tls: Option<Tls>,
    /// Bytes of the body that came.
    pub(crate) bytes: u64,
    /// Of the bytes that came.
    sha256: Option<String>,
    headers: Vec<(String, String)>,
    /// It was pushed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pushed: Option<PushReport>,
    timings: Option<PhaseTimes>,
    pub(crate) error: Option<String>,
}

#[derive(Debug, Serialize)]
struct Tls {
    version: String,
    /// `null` over QUIC, which does not report it.
    cipher: Option<String>,
    resumed: bool,
}

/// Lengths of the phases; `null` for what did not happen.
#[derive(Debug, Serialize)]
struct PhaseTimes {
    dns: Option<f64>,
    connect: Option<f64>,
    tls: Option<f64>,
    /// From the request to the head of the response.
    first_byte: f64,
    /// From asking to the last byte, redirects and waiting included.
    total: f64,
}

/// Bytes of all bodies together that may wait for their turn on stdout.
const MAX_WAITING_BYTES: usize = 256 * 1024 * 1024;

/// A URL on its way.
pub(crate) struct Transfer {
    fetched: JoinHandle<FetchResult>,
    /// Pieces for stdout. A body that waits for its turn must not fill the session's window, because that would block
    /// the body that has its turn. So the channel is unbounded, and too many bytes in it are an error.
    pieces: mpsc::UnboundedReceiver<Bytes>,
    waiting: BufferedBytes,
    has_turn: Arc<AtomicBool>,
}

/// Bytes that wait for stdout. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct BufferedBytes(Arc<AtomicUsize>);

/// The way of one body to stdout.
struct StdoutSink {
    pieces: mpsc::UnboundedSender<Bytes>,
    waiting: BufferedBytes,
    has_turn: Arc<AtomicBool>,
}

impl StdoutSink {
    /// Queues a piece. The transfer that has its turn is read only as fast as stdout accepts it, since both run on one
    /// thread. The other transfers share a limit of `MAX_WAITING_BYTES`.
    fn send(&self, piece: Bytes) -> Result<(), String> {
        let before = self.waiting.0.fetch_add(piece.len(), Ordering::Relaxed);
        let too_much = before.saturating_add(piece.len()) > MAX_WAITING_BYTES;
        if too_much && !self.has_turn.load(Ordering::Relaxed) {
            self.waiting.0.fetch_sub(piece.len(), Ordering::Relaxed);
            return Err(format!(
                "more than {MAX_WAITING_BYTES} bytes wait for their turn on stdout; want --output-dir"
            ));
        }
        let _ = self.pieces.send(piece); // the receiver may be gone
        Ok(())
    }
}

impl Transfer {
    /// Begins at once; `limit` is for all of it.
    pub(crate) fn start(
        order: FetchRequest,
        client: &Client,
        runtime: &SharedRuntime,
        limit: Option<Duration>,
        waiting: &BufferedBytes,
    ) -> Self {
        let (sender, pieces) = mpsc::unbounded_channel();
        let (waiting, has_turn) = (waiting.clone(), Arc::default());
        let stdout = StdoutSink {
            pieces: sender,
            waiting: waiting.clone(),
            has_turn: Arc::clone(&has_turn),
        };
        // Sent here, not in the task, so that requests go in the order of the arguments.
        let began = runtime.now();
        let first = client.send(order.request(), Priority::HIGHEST);
        let (client, runtime) = (client.clone(), runtime.clone());
        let fetched = tokio::spawn(async move {
            let mut fetched = FetchResult {
                url: order.url.to_string(),
                ..FetchResult::default()
            };
            let fetching = fetch(&order, first, &client, &stdout, &mut fetched);
            let outcome = match limit {
                None => fetching.await,
                Some(limit) => match tokio::time::timeout(limit, fetching).await {
                    Ok(outcome) => outcome,
                    Err(_) => Err(format!("not done within {limit:?}")),
                },
            };
            fetched.error = outcome.err();
            if let Some(timings) = &mut fetched.timings {
                timings.total = milliseconds((began, runtime.now()));
            }
            fetched
        });
        Self {
            fetched,
            pieces,
            waiting,
            has_turn,
        }
    }

    /// Writes what is for stdout until there is no more, and says what came of it.
    pub(crate) async fn finish(mut self, printer: &Printer) -> anyhow::Result<FetchResult> {
        self.has_turn.store(true, Ordering::Relaxed);
        while let Some(piece) = self.pieces.recv().await {
            printer.bytes(&piece)?;
            self.waiting.0.fetch_sub(piece.len(), Ordering::Relaxed);
        }
        Ok(self.fetched.await?)
    }
}

type ResponseFuture = spdy::runtime::BoxFuture<Result<Response<Body>, spdy_client::error::Error>>;

async fn fetch(
    order: &FetchRequest,
    first: ResponseFuture,
    client: &Client,
    stdout: &StdoutSink,
    fetched: &mut FetchResult,
) -> Result<(), String> {
    let mut order = order.clone();
    let mut response = first.await.map_err(|error| error.to_string())?;
    for followed in 0.. {
        let Some(next) = redirect_request(&order, &response)? else {
            break;
        };
        if followed == order.redirects {
            return Err(format!("more than {followed} redirects"));
        }
        drop(response);
        order = next;
        fetched.final_url = Some(order.url.to_string());
        let sent = client.send(order.request(), Priority::HIGHEST).await;
        response = sent.map_err(|error| error.to_string())?;
    }
    let (head, body) = response.into_parts();
    fetched.note(&head);
    if order.print_head {
        stdout.send(head_text(&head).into())?;
    }
    let stdout = |piece| stdout.send(piece);
    receive(body, &order.destination, stdout, fetched).await
}

/// Takes the body where it is to go, counting and hashing what comes.
pub(super) async fn receive(
    mut body: Body,
    destination: &Destination,
    stdout: impl Fn(Bytes) -> Result<(), String>,
    fetched: &mut FetchResult,
) -> Result<(), String> {
    let mut file = match destination {
        Destination::File(path) | Destination::NewFile(path) => {
            let said = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
            if let Some(folder) = path.parent() {
                std::fs::create_dir_all(folder).map_err(said)?;
            }
            let made = match destination {
                Destination::NewFile(_) => File::create_new(path),
                _ => File::create(path),
            };
            Some((made.map_err(said)?, path))
        }
        Destination::Stdout | Destination::Nowhere => None,
    };
    let mut hash = Sha256::new();
    let mut outcome = Ok(());
    while let Some(frame) = body.frame().await {
        let data = match frame {
            Ok(frame) => match frame.into_data() {
                Ok(data) => data,
                Err(_) => continue, // trailers
            },
            Err(error) => {
                outcome = Err(format!(
                    "the body broke off after {} bytes: {error}",
                    fetched.bytes
                ));
                break;
            }
        };
        fetched.bytes += data.len() as u64;
        hash.update(&data);
        match (&mut file, destination) {
            (Some((file, path)), _) => file
                .write_all(&data)
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?,
            (None, Destination::Stdout) => stdout(data)?,
            (None, _) => {}
        }
    }
    fetched.sha256 = Some(
        hash.finalize()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
    );
    outcome
}

/// The only headers that follow a redirect to another origin, if their values are not marked as secret. Any other may be a credential
/// (`Authorization`, `Cookie`, `X-Api-Key`) or describe the first origin (`Host`, `Referer`, `If-None-Match`).
const CROSS_ORIGIN_HEADERS: [header::HeaderName; 12] = [
    header::ACCEPT,
    header::ACCEPT_CHARSET,
    header::ACCEPT_ENCODING,
    header::ACCEPT_LANGUAGE,
    header::CACHE_CONTROL,
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_TYPE,
    header::PRAGMA,
    header::RANGE,
    header::UPGRADE_INSECURE_REQUESTS,
    header::USER_AGENT,
];

/// Headers that describe the request's content. They go when it does.
const CONTENT_HEADERS: [header::HeaderName; 5] = [
    header::CONTENT_ENCODING,
    header::CONTENT_LANGUAGE,
    header::CONTENT_LENGTH,
    header::CONTENT_LOCATION,
    header::CONTENT_TYPE,
];

/// Removes from `headers` what another origin must not receive.
fn strip_for_cross_origin(headers: &mut HeaderMap) {
    let is_kept = |name: &header::HeaderName| {
        let mut values = headers.get_all(name).iter();
        CROSS_ORIGIN_HEADERS.contains(name) && !values.any(HeaderValue::is_sensitive)
    };
    let removed: Vec<_> = headers
        .keys()
        .filter(|name| !is_kept(name))
        .cloned()
        .collect();
    for name in removed {
        headers.remove(name);
    }
}

/// The order that a redirect makes of `order` (RFC 9110 §15.4); `None` if `response` is none.
fn redirect_request(
    order: &FetchRequest,
    response: &Response<Body>,
) -> Result<Option<FetchRequest>, String> {
    let (status, headers) = (response.status(), response.headers());
    let is_one = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = headers
        .get(header::LOCATION)
        .filter(|_| is_one && order.redirects > 0)
    else {
        return Ok(None);
    };
    let location = location
        .to_str()
        .map_err(|_| "the redirect's location is no text".to_owned())?;
    let bad =
        |why: &dyn std::fmt::Display| format!("cannot follow the redirect to {location}: {why}");
    let base = url::Url::parse(&order.url.to_string()).map_err(|error| bad(&error))?;
    let mut to = base.join(location).map_err(|error| bad(&error))?;
    to.set_fragment(None);
    let to: Uri = to.as_str().parse().map_err(|error| bad(&error))?;
    let origin = Origin::of(&to).map_err(|error| bad(&error))?;
    let mut next = FetchRequest {
        url: to,
        ..order.clone()
    };
    let as_get = match status {
        StatusCode::SEE_OTHER => order.method != Method::HEAD,
        StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND => order.method == Method::POST,
        _ => false,
    };
    if as_get {
        next.method = Method::GET;
        next.body = Bytes::new();
        for name in CONTENT_HEADERS {
            next.headers.remove(name);
        }
    }
    if Origin::of(&order.url).ok() != Some(origin) {
        strip_for_cross_origin(&mut next.headers);
    }
    Ok(Some(next))
}

/// A response's head as HTTP/1.1 text, whatever it came by.
fn head_text(head: &http::response::Parts) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {}\r\n", head.status).into_bytes();
    for (name, value) in &head.headers {
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    text
}

fn milliseconds((from, to): (Instant, Instant)) -> f64 {
    (to - from).as_secs_f64() * 1e3
}

impl FetchRequest {
    fn request(&self) -> Request<Body> {
        let mut request = Request::new(Body::full(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}

impl FetchResult {
    /// What is known of a push from the first.
    pub(super) fn of_push(url: &Uri, connection: usize, route: &Route) -> Self {
        let mut fetched = Self {
            url: url.to_string(),
            connection: Some(connection),
            ..Self::default()
        };
        fetched.note_route(route);
        fetched
    }

    /// Notes what the head of the response says, and the way it came.
    pub(super) fn note(&mut self, head: &http::response::Parts) {
        self.pushed = PushReport::of(head);
        self.status = Some(head.status.as_u16());
        self.headers = head
            .headers
            .iter()
            .map(|(name, value)| {
                (
                    name.to_string(),
                    String::from_utf8_lossy(value.as_bytes()).into_owned(),
                )
            })
            .collect();
        if let Some(route) = head.extensions.get::<Route>() {
            self.note_route(route);
        }
        if let Some(timings) = head.extensions.get::<Timings>() {
            self.connection = Some(timings.connection);
            self.timings = Some(PhaseTimes {
                dns: timings.dns.map(milliseconds),
                connect: timings.connect.map(milliseconds),
                tls: timings.tls.map(milliseconds),
                first_byte: milliseconds((timings.sent, timings.first_byte)),
                total: 0.0,
            });
        }
    }

    /// Notes the connection it came by.
    fn note_route(&mut self, route: &Route) {
        self.protocol = Some(route.protocol.alpn());
        self.address = Some(route.address.to_string());
        self.tls = route.tls.map(|tls| Tls {
            version: tls
                .version
                .map_or_else(String::new, |version| format!("{version:?}")),
            cipher: tls.suite.map(|suite| format!("{suite:?}")),
            resumed: tls.resumed,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_that_wait_for_stdout_are_kept_up_to_a_limit() {
        let waiting = BufferedBytes::default();
        let body = || {
            let (pieces, kept) = mpsc::unbounded_channel();
            let (waiting, has_turn) = (waiting.clone(), Arc::default());
            let way = StdoutSink {
                pieces,
                waiting,
                has_turn,
            };
            (way, kept)
        };
        let ((first, _a), (second, _b)) = (body(), body());
        first.has_turn.store(true, Ordering::Relaxed);
        let piece = |len| Bytes::from(vec![0; len]);
        second.send(piece(MAX_WAITING_BYTES - 1)).unwrap();
        first.send(piece(1)).unwrap();
        first.send(piece(1)).expect("it is written as it comes");
        assert!(second.send(piece(1)).is_err());
    }
}
