//! The server: tokens and URLs, HTTP by hyper, and a session for each upgrade.

use std::sync::Arc;
use std::time::Duration;

use http::uri::{PathAndQuery, Scheme};
use http::{Method, Request, Response, StatusCode, Uri};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use parking_lot::Mutex;
use spdy::runtime::BoxFuture;
use spdy::server::Accept;
use spdy::upgrade::{self, CloseLast, Refusal};
use spdy::{SharedRuntime, server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::config::{Config, ConfigError};
use crate::error::RequestError;
use crate::handler::{Handler, HandlerError, Streams};
use crate::protocol::{ChannelProtocol, PORT_FORWARD, RemoteCommand};
use crate::request::{AttachRequest, ExecRequest, PortForwardRequest};
use crate::status::ExitCode;
use crate::tokens::{RANDOM_BYTES, Tokens};
use crate::{channels, port_forward, remote_command, tunnel, websocket};

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
///   (behind TLS of your own), or [`respond`](Self::respond) within an HTTP server of your own.
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
    handler: Arc<H>,
    /// The prefix of URLs, without a trailing slash.
    base: String,
    /// The path in `base`.
    prefix: String,
    config: Config,
    versions: Vec<&'static str>,
    tokens: Mutex<Tokens<StreamingRequest>>,
    runtime: SharedRuntime,
    stopped: watch::Sender<bool>,
}

/// The request of a token.
#[derive(Debug)]
enum StreamingRequest {
    Exec(ExecRequest),
    Attach(AttachRequest),
    PortForward(PortForwardRequest),
}

impl StreamingRequest {
    /// The first segment of its path.
    fn verb(&self) -> &'static str {
        match self {
            Self::Exec(_) => "exec",
            Self::Attach(_) => "attach",
            Self::PortForward(_) => "portforward",
        }
    }
}

/// The negotiated protocol for a client.
struct NegotiatedUpgrade {
    request: StreamingRequest,
    protocol: SessionProtocol,
}

/// The protocol after the 101.
enum SessionProtocol {
    /// SPDY, with the version of the protocol over it.
    Spdy(RemoteCommand),
    /// SPDY inside WebSocket.
    Tunnel,
    /// Plain WebSocket; the ports that it forwards.
    Channels(ChannelProtocol, Vec<u16>),
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
            handler: Arc::new(handler),
            base: base_url.trim_end_matches('/').to_owned(),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            versions: config
                .remote_command
                .iter()
                .map(|version| version.name())
                .collect(),
            config,
            tokens: Mutex::new(tokens),
            runtime,
            stopped: watch::Sender::new(false),
        })))
    }

    /// The handler behind the server.
    #[must_use]
    pub fn handler(&self) -> &H {
        &self.0.handler
    }

    /// Creates a URL at which the client may run the command.
    ///
    /// # Errors
    ///
    /// The request is invalid, or too many URLs are pending.
    pub fn exec_url(&self, request: ExecRequest) -> Result<String, RequestError> {
        request.stream_options.check()?;
        if request.command.is_empty() {
            return Err(RequestError::NoCommand);
        }
        self.url(&request.container.clone(), StreamingRequest::Exec(request))
    }

    /// Creates a URL at which the client may attach to the container's process.
    ///
    /// # Errors
    ///
    /// The request is invalid, or too many URLs are pending.
    pub fn attach_url(&self, request: AttachRequest) -> Result<String, RequestError> {
        request.stream_options.check()?;
        self.url(
            &request.container.clone(),
            StreamingRequest::Attach(request),
        )
    }

    /// Creates a URL at which the client may connect to the pod's ports.
    ///
    /// # Errors
    ///
    /// The request is invalid, or too many URLs are pending.
    pub fn port_forward_url(&self, request: PortForwardRequest) -> Result<String, RequestError> {
        self.url(
            &request.sandbox.clone(),
            StreamingRequest::PortForward(request),
        )
    }

    fn url(&self, name: &str, streaming_request: StreamingRequest) -> Result<String, RequestError> {
        if name.is_empty() {
            return Err(RequestError::MissingTarget);
        }
        let verb = streaming_request.verb();
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random)
            .map_err(|error| RequestError::NoRandomness(error.to_string()))?;
        let now = self.0.runtime.now();
        let limit = self.0.config.max_tokens;
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
        let room = Arc::new(Semaphore::new(self.0.config.max_connections));
        let mut stopped = self.0.stopped.subscribe();
        let runtime = &self.0.runtime;
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
            _ = stopped.wait_for(|stopped| *stopped) => {}
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
        let mut http = hyper::server::conn::http1::Builder::new();
        http.timer(TokioTimer::new())
            .header_read_timeout(self.0.config.head_timeout)
            .max_buf_size(self.0.config.head_bytes.max(MIN_HEAD_BYTES));
        let serving = http
            .serve_connection(TokioIo::new(io), service)
            .with_upgrades();
        let mut stopped = self.0.stopped.subscribe();
        tokio::select! {
            served = serving => if let Err(error) = served {
                tracing::debug!(%error, "HTTP connection ended");
            },
            _ = stopped.wait_for(|stopped| *stopped) => return,
        }
        // Here and not in a separate task, so that the connection uses its slot until the session's end.
        if let Ok(session) = session.try_recv() {
            session.await;
        }
    }

    /// Answers a request that your HTTP/1.1 server has read, from hyper with upgrades enabled. After a 101 the session runs in its
    /// own task.
    pub fn respond<B>(&self, request: Request<B>) -> Response<String> {
        let (response, session) = self.answer(request);
        if let Some(session) = session {
            tokio::spawn(session);
        }
        response
    }

    /// Stops the server: accepts no more connections, and ends every session and drops its handler.
    pub fn stop(&self) {
        self.0.stopped.send_replace(true);
    }

    /// The response, and the session that follows a 101.
    fn answer<B>(&self, mut request: Request<B>) -> (Response<String>, Option<BoxFuture<()>>) {
        match self.negotiate(&request) {
            Ok((negotiated, response)) => {
                let upgrade = hyper::upgrade::on(&mut request);
                let server = self.clone();
                let session: BoxFuture<()> = Box::pin(async move {
                    match upgrade.await {
                        Ok(io) => server.run(negotiated, TokioIo::new(io)).await,
                        Err(error) => tracing::debug!(%error, "the client left during the upgrade"),
                    }
                });
                (response, Some(session))
            }
            Err(refusal) => (refusal.response(), None),
        }
    }

    /// Negotiates a request. Its token is used up, whatever the result.
    fn negotiate<B>(
        &self,
        request: &Request<B>,
    ) -> Result<(NegotiatedUpgrade, Response<String>), Refusal> {
        if *request.method() != Method::GET && *request.method() != Method::POST {
            let message = "the method must be GET or POST";
            return Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message));
        }
        let unknown = || Refusal::new(StatusCode::NOT_FOUND, "unknown, used or expired token");
        let path = request.uri().path().strip_prefix(&self.0.prefix);
        let (verb, token) = path
            .and_then(|path| path.strip_prefix('/')?.split_once('/'))
            .ok_or_else(unknown)?;
        let streaming_request = self
            .tokens()
            .take(self.0.runtime.now(), token)
            .filter(|streaming_request| streaming_request.verb() == verb)
            .ok_or_else(unknown)?;
        let versions: &[&str] = match streaming_request {
            StreamingRequest::Exec(_) | StreamingRequest::Attach(_) => &self.0.versions,
            StreamingRequest::PortForward(_) => &[PORT_FORWARD],
        };
        let in_spdy = || -> Result<_, Refusal> {
            let accepted = upgrade::negotiate(request, versions)?;
            // The protocol is from our own list; without a name it is the first version.
            let version = accepted.protocol().and_then(RemoteCommand::from_name);
            let protocol = SessionProtocol::Spdy(version.unwrap_or(RemoteCommand::V1));
            Ok((protocol, accepted.response()))
        };
        let in_websocket = || self.negotiate_websocket(&streaming_request, request);
        // The protocol that the client lists first, otherwise the other one that it lists; if neither works, the first refusal.
        // Each branch checks if the client lists its protocol at all.
        let outcome = if websocket::is_preferred(request) {
            in_websocket().or_else(|refusal| in_spdy().map_err(|_| refusal))
        } else {
            in_spdy().or_else(|refusal| in_websocket().map_err(|_| refusal))
        };
        let (protocol, response) = outcome?;
        let negotiated = NegotiatedUpgrade {
            request: streaming_request,
            protocol,
        };
        Ok((negotiated, response.map(|()| String::new())))
    }

    /// Negotiates a WebSocket request: SPDY inside it, or channels.
    fn negotiate_websocket<B>(
        &self,
        streaming_request: &StreamingRequest,
        request: &Request<B>,
    ) -> Result<(SessionProtocol, Response<()>), Refusal> {
        let config = &self.0.config;
        let forward = match streaming_request {
            StreamingRequest::PortForward(forward) => Some(forward),
            StreamingRequest::Exec(_) | StreamingRequest::Attach(_) => None,
        };
        let tunnels = websocket::offered(request).any(|name| name.starts_with(tunnel::PREFIX));
        if forward.is_some() && tunnels && config.tunnel {
            let response = tunnel::accept(request, &[PORT_FORWARD])?;
            return Ok((SessionProtocol::Tunnel, response));
        }
        let served = |protocol: &ChannelProtocol| {
            config.channels.contains(protocol) && (forward.is_none() || protocol.forwards_ports())
        };
        // A client that sends no sub-protocol uses the oldest version.
        let unnamed = match forward {
            Some(_) => ChannelProtocol::V4,
            None => ChannelProtocol::V1,
        };
        let mut offered = websocket::offered(request).peekable();
        let (named, protocol) = match offered.peek() {
            None => (false, Some(unnamed).filter(served)),
            Some(_) => {
                let mut candidates = offered.filter_map(ChannelProtocol::from_name);
                (true, candidates.find(served))
            }
        };
        let Some(protocol) = protocol else {
            let candidates = config.channels.iter().filter(|candidate| served(candidate));
            let names: Vec<_> = candidates.map(|candidate| candidate.name()).collect();
            let message = format!("expected one of the sub-protocols {names:?}");
            return Err(Refusal::new(StatusCode::FORBIDDEN, message));
        };
        let ports = match forward {
            Some(forward) => channels::port_forward::ports(forward, request, protocol)?,
            None => Vec::new(),
        };
        let response = websocket::accept(request, named.then_some(protocol.name()))?;
        Ok((SessionProtocol::Channels(protocol, ports), response))
    }

    /// Runs a session to its end.
    async fn run<T>(&self, negotiated: NegotiatedUpgrade, io: T)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let runtime = self.0.runtime.clone();
        let mut builder = upgrade::server_builder();
        if let Some(metrics) = &self.0.config.metrics {
            builder = builder.metrics(metrics);
        }
        let NegotiatedUpgrade {
            request: streaming_request,
            protocol,
        } = negotiated;
        match protocol {
            SessionProtocol::Spdy(version) => {
                let (accept, connection) = builder.handshake(CloseLast::new(io), runtime);
                self.drive(streaming_request, version, accept, connection)
                    .await;
            }
            SessionProtocol::Tunnel => {
                let io = CloseLast::new(tunnel::Tunnel::server(io).await);
                let (accept, connection) = builder.handshake(io, runtime);
                self.drive(streaming_request, RemoteCommand::V1, accept, connection)
                    .await;
            }
            SessionProtocol::Channels(protocol, ports) => {
                let mut stopped = self.0.stopped.subscribe();
                tokio::select! {
                    () = self.serve_channels(streaming_request, protocol, ports, io) => {}
                    _ = stopped.wait_for(|stopped| *stopped) => {}
                }
            }
        }
    }

    /// Runs connection and application together: when the connection has ended, both have.
    async fn drive<T>(
        &self,
        streaming_request: StreamingRequest,
        version: RemoteCommand,
        accept: Accept,
        connection: server::Connection<T>,
    ) where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let mut stopped = self.0.stopped.subscribe();
        let driven = async {
            if let Err(error) = connection.run().await {
                tracing::debug!(%error, "session lost");
            }
        };
        let both = async {
            tokio::join!(
                driven,
                self.serve_session(streaming_request, version, accept)
            )
        };
        tokio::select! {
            _ = both => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    }

    /// Serves a request over a session.
    async fn serve_session(
        &self,
        streaming_request: StreamingRequest,
        version: RemoteCommand,
        accept: Accept,
    ) {
        let Inner {
            handler,
            config,
            runtime,
            ..
        } = &*self.0;
        let timeout = config.stream_creation_timeout;
        match streaming_request {
            StreamingRequest::Exec(request) => {
                let stream_options = request.stream_options;
                let run = |streams| handler.exec(request, streams);
                remote_command::serve(accept, version, stream_options, timeout, runtime, run).await;
            }
            StreamingRequest::Attach(request) => {
                let stream_options = request.stream_options;
                let run = |streams| attach(&**handler, request, streams);
                remote_command::serve(accept, version, stream_options, timeout, runtime, run).await;
            }
            StreamingRequest::PortForward(request) => {
                port_forward::serve(accept, handler.clone(), request, config, runtime).await;
            }
        }
    }

    /// Serves a request over a plain WebSocket.
    async fn serve_channels<T>(
        &self,
        streaming_request: StreamingRequest,
        protocol: ChannelProtocol,
        ports: Vec<u16>,
        io: T,
    ) where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let (handler, runtime) = (&self.0.handler, &self.0.runtime);
        let limit = self.0.config.message_bytes;
        match streaming_request {
            StreamingRequest::Exec(request) => {
                let stream_options = request.stream_options;
                let run = |streams| handler.exec(request, streams);
                channels::remote_command::serve(io, protocol, stream_options, limit, runtime, run)
                    .await;
            }
            StreamingRequest::Attach(request) => {
                let stream_options = request.stream_options;
                let run = |streams| attach(&**handler, request, streams);
                channels::remote_command::serve(io, protocol, stream_options, limit, runtime, run)
                    .await;
            }
            StreamingRequest::PortForward(PortForwardRequest { sandbox, .. }) => {
                let handler = handler.clone();
                channels::port_forward::serve(
                    io, protocol, handler, sandbox, ports, limit, runtime,
                )
                .await;
            }
        }
    }
}

/// Attach reports no exit code.
async fn attach<H: Handler>(
    handler: &H,
    request: AttachRequest,
    streams: Streams,
) -> Result<ExitCode, HandlerError> {
    let attached = handler.attach(request, streams).await;
    attached.map(|()| ExitCode::SUCCESS)
}
