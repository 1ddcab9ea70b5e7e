//! Answers streaming requests: negotiates the protocol of an upgrade, and runs the session after the 101.
//!
//! It knows neither tokens nor paths. [`StreamingServer`](crate::StreamingServer) adds both.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use spdy::runtime::BoxFuture;
use spdy::server::Accept;
use spdy::upgrade::{self, CloseLast, Refusal};
use spdy::{SharedRuntime, server};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use crate::config::Config;
use crate::handler::{Handler, Streams};
use crate::protocol::{ChannelProtocol, PORT_FORWARD, RemoteCommand};
use crate::request::{AttachRequest, ExecRequest, PortForwardRequest, StreamingRequest};
use crate::status::ExitCode;
use crate::{channels, port_forward, remote_command, tunnel, websocket};

/// Serves streaming requests that your own HTTP server has routed and authorised, as a kubelet does. It is cheap to clone.
///
/// A kubelet's server has URLs without a token, such as `/exec/NAMESPACE/POD/CONTAINER?command=ls&output=1`.
/// [`PodRequest`](crate::PodRequest) parses them. **Authorisation is the caller's work**: a `Responder` runs the command of every
/// request that it gets. The kubelet verifies the API server's client certificate.
///
/// Your HTTP server also limits connections and request heads. Of [`Config`], a `Responder` uses neither the limits of heads nor those
/// of tokens.
///
/// ```no_run
/// # use spdy_cri::{Config, Handler, PodRequest, Responder};
/// # use http::{Request, Response};
/// # use hyper::body::Incoming;
/// /// The service of a hyper server: `serve_connection(io, service).with_upgrades()`.
/// fn answer<H: Handler>(responder: &Responder<H>, request: Request<Incoming>) -> Response<String> {
///     // Authorise the request first.
///     match PodRequest::parse_kubelet(request.uri()) {
///         Ok(pod) => {
///             let container = format!("{}/{}", pod.namespace, pod.pod); // your id of it
///             responder.respond(request, pod.into_request(container))
///         }
///         Err(error) => {
///             let mut response = Response::new(format!("{error}\n"));
///             *response.status_mut() = http::StatusCode::BAD_REQUEST;
///             response
///         }
///     }
/// }
/// ```
#[derive(Debug)]
pub struct Responder<H>(Arc<Inner<H>>);

impl<H> Clone for Responder<H> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

#[derive(Debug)]
struct Inner<H> {
    handler: Arc<H>,
    config: Config,
    versions: Vec<&'static str>,
    runtime: SharedRuntime,
    /// Places for the sessions of `respond`.
    places: Arc<Semaphore>,
    stopped: watch::Sender<bool>,
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

/// Refuses methods other than GET and POST.
pub(crate) fn check_method<B>(request: &Request<B>) -> Result<(), Refusal> {
    if *request.method() == Method::GET || *request.method() == Method::POST {
        return Ok(());
    }
    let message = "the method must be GET or POST";
    Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, message))
}

impl<H: Handler> Responder<H> {
    /// Creates a responder that passes requests to `handler`.
    pub fn new(handler: H, config: Config, runtime: SharedRuntime) -> Self {
        Self(Arc::new(Inner {
            handler: Arc::new(handler),
            versions: config
                .remote_command
                .iter()
                .map(|version| version.name())
                .collect(),
            places: Arc::new(Semaphore::new(
                config.max_connections.min(Semaphore::MAX_PERMITS),
            )),
            config,
            runtime,
            stopped: watch::Sender::new(false),
        }))
    }

    /// The handler behind the responder.
    #[must_use]
    pub fn handler(&self) -> &H {
        &self.0.handler
    }

    /// Answers a request that your HTTP/1.1 server has read, from hyper with upgrades enabled. After a 101 the session runs in its
    /// own task, until its end or [`stop`](Self::stop). An invalid `streaming_request` gets a 400, a request that is no upgrade 400
    /// or 403, and one more session than [`Config::max_connections`] 503.
    pub fn respond<B>(
        &self,
        request: Request<B>,
        streaming_request: StreamingRequest,
    ) -> Response<String> {
        let answered = self
            .place()
            .and_then(|place| Ok((place, self.answer(request, streaming_request)?)));
        match answered {
            Ok((place, (response, session))) => {
                tokio::spawn(async move {
                    session.await;
                    drop(place);
                });
                response
            }
            Err(refusal) => refusal.response(),
        }
    }

    /// Ends every session and drops its handler's future. Later requests get a 503.
    pub fn stop(&self) {
        self.0.stopped.send_replace(true);
    }

    /// A place for a session that runs in its own task.
    pub(crate) fn place(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        if *self.0.stopped.borrow() {
            let message = "the server has stopped";
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message));
        }
        self.0.places.clone().try_acquire_owned().map_err(|_| {
            let message = format!("too many sessions, limit {}", self.0.config.max_connections);
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, message)
        })
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn runtime(&self) -> &SharedRuntime {
        &self.0.runtime
    }

    /// Completes after [`stop`](Self::stop).
    pub(crate) async fn stopped(&self) {
        // The sender exists as long as `self`.
        let _ = self
            .0
            .stopped
            .subscribe()
            .wait_for(|stopped| *stopped)
            .await;
    }

    /// The 101, and the session that follows it.
    pub(crate) fn answer<B>(
        &self,
        mut request: Request<B>,
        streaming_request: StreamingRequest,
    ) -> Result<(Response<String>, BoxFuture<()>), Refusal> {
        let (negotiated, response) = self.negotiate(&request, streaming_request)?;
        let upgrade = hyper::upgrade::on(&mut request);
        let responder = self.clone();
        let session: BoxFuture<()> = Box::pin(async move {
            let upgraded = tokio::select! {
                upgraded = upgrade => upgraded,
                () = responder.stopped() => return,
            };
            match upgraded {
                Ok(io) => responder.run(negotiated, TokioIo::new(io)).await,
                Err(error) => tracing::debug!(%error, "the client disconnected during the upgrade"),
            }
        });
        Ok((response, session))
    }

    /// Negotiates the protocol of a request.
    fn negotiate<B>(
        &self,
        request: &Request<B>,
        streaming_request: StreamingRequest,
    ) -> Result<(NegotiatedUpgrade, Response<String>), Refusal> {
        check_method(request)?;
        streaming_request
            .check()
            .map_err(|error| Refusal::new(StatusCode::BAD_REQUEST, error.to_string()))?;
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
                tokio::select! {
                    () = self.serve_channels(streaming_request, protocol, ports, io) => {}
                    () = self.stopped() => {}
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
            () = self.stopped() => {}
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
                let run = |streams| exec(&**handler, request, streams);
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
                let run = |streams| exec(&**handler, request, streams);
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

/// Runs a command. Errors have the text of the kubelet's `ServeExec`.
async fn exec<H: Handler>(
    handler: &H,
    request: ExecRequest,
    streams: Streams,
) -> Result<ExitCode, String> {
    let ended = handler.exec(request, streams).await;
    ended.map_err(|error| format!("error executing command in container: {error}"))
}

/// Attach reports no exit code. Errors have the text of the kubelet's `ServeAttach`.
async fn attach<H: Handler>(
    handler: &H,
    request: AttachRequest,
    streams: Streams,
) -> Result<ExitCode, String> {
    let attached = handler.attach(request, streams).await;
    attached
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| format!("error attaching to container: {error}"))
}
