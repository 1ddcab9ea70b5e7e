//! The server: tokens and URLs, and HTTP by hyper. A [`Responder`] answers the requests.

use std::sync::Arc;
use std::time::Duration;

use http::uri::{PathAndQuery, Scheme};
use http::{Request, Response, StatusCode, Uri};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use spdy::SharedRuntime;
use spdy::runtime::BoxFuture;
use spdy::upgrade::Refusal;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::config::{Config, ConfigError};
use crate::error::RequestError;
use crate::handler::Handler;
use crate::request::{AttachRequest, ExecRequest, PortForwardRequest, StreamingRequest};
use crate::responder::{Responder, check_method};
use crate::tokens::{RANDOM_BYTES, Tokens};

/// Delay after an accept that failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Smallest buffer that hyper accepts, bytes.
const MIN_HEAD_BYTES: usize = 8192;

/// The streaming server of a container runtime. It is cheap to clone.
///
/// The runtime's gRPC service requests URLs from it, and returns them to the kubelet:
///
/// - [`exec_url`](Self::exec_url), [`attach_url`](Self::attach_url),
///   [`port_forward_url`](Self::port_forward_url): each URL is valid for one use, within a minute;
/// - [`serve`](Self::serve) on a listener, [`serve_connection`](Self::serve_connection) on a connection
///   (after your own TLS), or [`respond`](Self::respond) within your own HTTP server.
///
/// The token is the only authentication: any client that has the URL may use it. Listen on localhost, or use TLS.
#[derive(Debug)]
pub struct StreamingServer<H>(Arc<Inner<H>>);

impl<H> Clone for StreamingServer<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Inner<H> {
    responder: Responder<H>,
    /// The prefix of URLs, without a trailing slash.
    base: String,
    /// The path in `base`.
    prefix: String,
    tokens: Mutex<Tokens<StreamingRequest>>,
}

impl<H: Handler> StreamingServer<H> {
    /// Creates a server whose URLs begin with `base_url`: scheme, host and port as the API server reaches them, and a path if there
    /// is a proxy in between.
    ///
    /// # Errors
    ///
    /// If `base_url` is not a valid base URL.
    pub fn new(
        handler: H,
        base_url: &str,
        config: Config,
        runtime: SharedRuntime,
    ) -> Result<Self, ConfigError> {
        let bad = || ConfigError::BaseUrl {
            url: base_url.to_owned(),
        };
        let uri: Uri = base_url.parse().map_err(|_| bad())?;
        let http = [Some(&Scheme::HTTP), Some(&Scheme::HTTPS)].contains(&uri.scheme());
        let query = uri.path_and_query().and_then(PathAndQuery::query);
        if !http || query.is_some() {
            return Err(bad());
        }
        let tokens = Tokens::new(config.token_lifetime, config.max_tokens);
        Ok(Self(Arc::new(Inner {
            responder: Responder::new(handler, config, runtime),
            base: base_url.trim_end_matches('/').to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            tokens: Mutex::new(tokens),
        })))
    }

    /// The handler behind the server.
    #[must_use]
    pub fn handler(&self) -> &H {
        self.0.responder.handler()
    }

    /// Creates a URL at which the client may run the command.
    ///
    /// # Errors
    ///
    /// The request is invalid, or too many URLs are pending.
    pub fn exec_url(&self, request: ExecRequest) -> Result<String, RequestError> {
        self.url(request.into())
    }

    /// Creates a URL at which the client may attach to the container's process.
    ///
    /// # Errors
    ///
    /// The request is invalid, or too many URLs are pending.
    pub fn attach_url(&self, request: AttachRequest) -> Result<String, RequestError> {
        self.url(request.into())
    }

    /// Creates a URL at which the client may connect to the pod's ports.
    ///
    /// # Errors
    ///
    /// The request is invalid, or too many URLs are pending.
    pub fn port_forward_url(&self, request: PortForwardRequest) -> Result<String, RequestError> {
        self.url(request.into())
    }

    fn url(&self, streaming_request: StreamingRequest) -> Result<String, RequestError> {
        streaming_request.check()?;
        let verb = streaming_request.verb();
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)
            .map_err(|error| RequestError::NoRandomness(error.to_string()))?;
        let now = self.0.responder.runtime().now();
        let limit = self.0.responder.config().max_tokens;
        let token = self
            .tokens()
            .insert(now, random, streaming_request)
            .map_err(|_| RequestError::TooMany { limit })?;
        Ok(format!("{}/{verb}/{token}", self.0.base))
    }

    fn tokens(&self) -> parking_lot::MutexGuard<'_, Tokens<StreamingRequest>> {
        self.0.tokens.lock()
    }

    /// Serves all connections, until [`stop`](Self::stop). A failed accept, also for lack of file descriptors, is retried after a
    /// short delay.
    pub async fn serve(&self, listener: TcpListener) {
        let responder = &self.0.responder;
        let room = Arc::new(Semaphore::new(
            responder
                .config()
                .max_connections
                .min(Semaphore::MAX_PERMITS),
        ));
        let runtime = responder.runtime();
        let accepting = async {
            loop {
                let Ok(place) = room.clone().acquire_owned().await else {
                    unreachable!("the semaphore is never closed")
                };
                let socket = match listener.accept().await {
                    Ok((socket, _)) => socket,
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept a connection");
                        runtime.sleep_until(runtime.now() + ACCEPT_PAUSE).await;
                        continue;
                    }
                };
                // Small frames are sent in both directions: delaying them would make typing slow.
                let _ = socket.set_nodelay(true);
                let server = self.clone();
                tokio::spawn(async move {
                    server.serve_connection(socket).await;
                    drop(place);
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = responder.stopped() => {}
        }
    }

    /// Serves one connection: HTTP/1.1, and the session after it, to its end.
    pub async fn serve_connection<T>(&self, io: T)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let (sessions, mut session) = tokio::sync::mpsc::unbounded_channel();
        let service = service_fn(|request| {
            let (response, session) = self.answer(request);
            if let Some(session) = session {
                let _ = sessions.send(session); // the receiver exists as long as this future
            }
            std::future::ready(Ok::<_, std::convert::Infallible>(response))
        });
        let config = self.0.responder.config();
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(config.head_timeout)
            .max_buf_size(config.head_bytes.max(MIN_HEAD_BYTES));
        let serving = http
            .serve_connection(TokioIo::new(io), service)
            .with_upgrades();
        tokio::select! {
            served = serving => if let Err(error) = served {
                tracing::debug!(%error, "HTTP connection ended");
            },
            () = self.0.responder.stopped() => return,
        }
        // Here and not in a separate task, so that the connection uses its slot until the session's end.
        if let Ok(session) = session.try_recv() {
            session.await;
        }
    }

    /// Answers a request that your HTTP/1.1 server has read, from hyper with upgrades enabled. After a 101 the session runs in its
    /// own task. One more session than [`Config::max_connections`] gets 503.
    pub fn respond<B>(&self, request: Request<B>) -> Response<String> {
        let place = match self.0.responder.place() {
            Ok(place) => place,
            Err(refusal) => return refusal.response(),
        };
        let (response, session) = self.answer(request);
        if let Some(session) = session {
            tokio::spawn(async move {
                session.await;
                drop(place);
            });
        }
        response
    }

    /// Stops the server: accepts no more connections, and ends every session and drops its handler.
    pub fn stop(&self) {
        self.0.responder.stop();
    }

    /// The response, and the session that follows a 101.
    fn answer<B>(&self, request: Request<B>) -> (Response<String>, Option<BoxFuture<()>>) {
        let answered = self
            .take_request(&request)
            .and_then(|streaming_request| self.0.responder.answer(request, streaming_request));
        match answered {
            Ok((response, session)) => (response, Some(session)),
            Err(refusal) => (refusal.response(), None),
        }
    }

    /// Takes the request of a URL. Its token is used up in any case.
    fn take_request<B>(&self, request: &Request<B>) -> Result<StreamingRequest, Refusal> {
        check_method(request)?;
        let unknown = || Refusal::new(StatusCode::NOT_FOUND, "unknown, used or expired token");
        let path = request.uri().path().strip_prefix(&self.0.prefix);
        let (verb, token) = path
            .and_then(|path| path.strip_prefix('/')?.split_once('/'))
            .ok_or_else(unknown)?;
        self.tokens()
            .take(self.0.responder.runtime().now(), token)
            .filter(|streaming_request| streaming_request.verb() == verb)
            .ok_or_else(unknown)
    }
}
