//! A server in the test process with features that `spdy serve` does not have: it echoes the body of a POST or its digest, and
//! pushes the files in a query.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::BodyExt;
use spdy::body::Body;
use spdy::runtime::{SharedRuntime, TokioRuntime};
use spdy::server::{PushForm, Pusher};
use spdy_frame::priority::Priority;
use spdy_net::latch::Latch;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_net::tls::certificates::Identity;
use spdy_net::tls::{ServerTls, TlsOptions};
use tokio::runtime::Runtime;

use crate::support::certificate::CERTIFICATE;
use crate::support::files::{FILES, sha256};

/// The path that responds to POST with the SHA-256 of the body, in hexadecimal.
pub(crate) const DIGEST_PATH: &str = "/digest";

/// The result of a push: its path, and the error if it was not sent completely.
pub(crate) type PushEnd = (String, Option<String>);

/// The running server. It stops when dropped.
pub(crate) struct Site {
    /// Address of the listener.
    pub(crate) address: SocketAddr,
    pushes: Arc<Mutex<Vec<PushEnd>>>,
    _runtime: Runtime,
}

impl Site {
    /// Accepts only `protocols`, with TLS if `secure`, and pushes in `push_form`.
    pub(crate) fn start(
        protocols: Vec<Protocol>,
        secure: bool,
        flow_control: bool,
        push_form: PushForm,
    ) -> Self {
        let runtime = Runtime::new().expect("create a runtime");
        let tls = secure.then(|| {
            let identity = Identity::from_files(&CERTIFICATE.chain, &CERTIFICATE.key)
                .expect("read the certificate");
            ServerTls::new(&identity, &protocols, &TlsOptions::default())
                .expect("a TLS configuration")
        });
        let pushes = Arc::new(Mutex::new(Vec::new()));
        let ends = Arc::clone(&pushes);
        let handler = Arc::new(move |request| respond(request, Arc::clone(&ends)));
        let _within = runtime.enter();
        let listener = Listener::bind(([127, 0, 0, 1], 0).into()).expect("a free port on loopback");
        let address = listener.address();
        let (shared, stop) = (SharedRuntime::new(TokioRuntime::start()), Latch::new());
        let mut options = ServerOptions::default();
        options.spdy.flow_control = flow_control;
        options.spdy.push_form = push_form;
        let never = stop.clone();
        runtime.spawn(
            listener.run(ListenOptions::default(), stop, move |io, _, _| {
                let (handler, tls, options) = (Arc::clone(&handler), tls.clone(), options.clone());
                let (shared, never) = (shared.clone(), never.clone());
                let protocols = protocols.clone();
                async move {
                    let tls = tls.as_ref();
                    // The client reports errors of the connection.
                    let _ =
                        serve_connection(io, handler, &protocols, tls, &options, &shared, &never)
                            .await;
                }
            }),
        );
        Self {
            address,
            pushes,
            _runtime: runtime,
        }
    }

    /// The pushes that have ended, sorted by path.
    pub(crate) fn pushes(&self) -> Vec<PushEnd> {
        let mut pushes = self.pushes.lock().expect("no thread panicked").clone();
        pushes.sort();
        pushes
    }
}

async fn respond(request: Request<Body>, pushes: Arc<Mutex<Vec<PushEnd>>>) -> Response<Body> {
    let (head, body) = request.into_parts();
    if head.method == Method::POST {
        let Ok(body) = body.collect().await else {
            return with_status(StatusCode::BAD_REQUEST);
        };
        let body = body.to_bytes();
        return Response::new(Body::full(match head.uri.path() {
            DIGEST_PATH => Bytes::from(sha256(&body)),
            _ => body,
        }));
    }
    let names = head
        .uri
        .query()
        .and_then(|query| query.strip_prefix("push="));
    for name in names.into_iter().flat_map(|names| names.split(',')) {
        let end = push(&head, name).await.err();
        pushes
            .lock()
            .expect("no thread panicked")
            .push((name.to_owned(), end));
    }
    match file(head.uri.path().trim_start_matches('/')) {
        Some(body) => Response::new(Body::full(body)),
        None => with_status(StatusCode::NOT_FOUND),
    }
}

/// Pushes the file `name` with the response to `head`. Returns when all of it is queued in the session, whose windows are large
/// enough for the files that the tests push.
async fn push(head: &http::request::Parts, name: &str) -> Result<(), String> {
    let pusher = head
        .extensions
        .get::<Pusher>()
        .ok_or("no pushes expected")?;
    let mut parts = head.uri.clone().into_parts();
    parts.path_and_query = Some(format!("/{name}").parse().expect("a valid name"));
    let uri = Uri::from_parts(parts).map_err(|error| error.to_string())?;
    let promise = Request::builder().uri(uri).body(()).expect("a URI");
    let responder = pusher
        .push(&promise, Priority::HIGHEST)
        .map_err(|error| error.to_string())?;
    let body = file(name).expect("a request for a known URL");
    let result = responder.respond(Response::new(Body::full(body))).await;
    result.map_err(|error| error.to_string())
}

fn file(name: &str) -> Option<Bytes> {
    let exists = FILES.files.iter().any(|file| file.name == name);
    exists.then(|| {
        let bytes = std::fs::read(FILES.folder.join(name)).expect("the files exist");
        Bytes::from(bytes)
    })
}

fn with_status(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
