//! Exec, attach and port-forward of Kubernetes over SPDY.
//!
//! The name: CRI is the Container Runtime Interface. Its calls `Exec`, `Attach` and `PortForward` carry no
//! bytes: a runtime answers each with a URL, and serves the streams at that URL itself. This crate is that
//! server, and a client for it (and for the API server, which uses the same protocol).
//!
//! ```text
//!  kubectl ---- API server ---- kubelet --- CRI (gRPC): Exec(container, command) ---> runtime
//!                   |                   <-------------- url with a token -------------  | exec_url
//!                   |                                                                    |
//!                   +------- POST /exec/TOKEN, Upgrade: SPDY/3.1 ------------------> StreamingServer
//!                            streams: error, stdin, stdout, stderr, resize                | streams
//!                                                                                     your Handler
//! ```
//!
//! | | |
//! | --- | --- |
//! | [`StreamingServer`] | tokens and URLs, HTTP, sessions; [`Config`] has its limits |
//! | [`Responder`] | the same without tokens and paths, for a kubelet's own server |
//! | [`Handler`] | what the runtime does: run a command, join a running one, reach a port |
//! | [`client`] | [`exec`](client::exec), [`attach`](client::attach), [`port_forward`](client::port_forward) |
//! | [`PodRequest`] | the URLs of the API server and of the kubelet |
//! | [`RemoteCommand`] | versions 1 to 5 of the protocol of exec and attach |
//! | [`ChannelProtocol`] | the same over a plain WebSocket, without SPDY |
//! | [`tunnel`] | SPDY inside WebSocket, `SPDY/3.1+portforward.k8s.io` |
//!
//! A server that runs nothing, and a client of it:
//!
//! ```
//! use spdy_cri::client::{self, Options};
//! use spdy_cri::{AttachRequest, Config, Connection, ExecRequest, ExitCode, Handler, HandlerError};
//! use spdy_cri::{SharedRuntime, StreamOptions, StreamingServer, Streams};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! struct Echo;
//!
//! impl Handler for Echo {
//!     async fn exec(&self, request: ExecRequest, mut streams: Streams) -> Result<ExitCode, HandlerError> {
//!         let mut stdout = streams.stdout.take().ok_or("no stdout")?;
//!         stdout.write_all(request.command.join(" ").as_bytes()).await?;
//!         Ok(ExitCode(7))
//!     }
//!     async fn attach(&self, _: AttachRequest, _: Streams) -> Result<(), HandlerError> {
//!         Err("nothing runs here".into())
//!     }
//!     async fn port_forward(&self, _: String, _: u16, _: Connection) -> Result<(), HandlerError> {
//!         Err("nothing listens here".into())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = SharedRuntime::tokio();
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! let base = format!("http://{}", listener.local_addr()?);
//! let server = StreamingServer::new(Echo, &base, Config::default(), runtime.clone())?;
//! tokio::spawn({ let server = server.clone(); async move { server.serve(listener).await } });
//!
//! let stream_options = StreamOptions { stdout: true, ..StreamOptions::default() };
//! let url = server.exec_url(ExecRequest { container: "c1".into(), command: vec!["hello".into()], stream_options })?;
//! let request = http::Request::post(&url).body(())?;
//! let socket = tokio::net::TcpStream::connect(&base["http://".len()..]).await?;
//! let mut process = client::exec(socket, &request, stream_options, Options::default(), runtime).await?;
//! let mut out = String::new();
//! process.stdout.take().expect("the stream was requested").read_to_string(&mut out).await?;
//! assert_eq!((out.as_str(), process.wait().await?), ("hello", ExitCode(7)));
//! # Ok(())
//! # }
//! ```
//!
//! # When a client is gone
//!
//! The future of the [`Handler`] is dropped then, and when the server is stopped: what it started must end
//! with it (`kill_on_drop` of a `tokio::process::Command`).
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(missing_debug_implementations)]

mod channels;
pub mod client;
mod config;
mod error;
mod handler;
mod pod_request;
mod port_forward;
mod protocol;
mod remote_command;
mod request;
mod resize;
mod responder;
mod server;
mod status;
mod stdio;
mod timeout;
mod tokens;
pub mod tunnel;
mod websocket;

// Exported so that a program can create a server or a client without a dependency on `spdy`.
pub use spdy::upgrade::{Limits, UpgradeError};
pub use spdy::{Metrics, SharedRuntime};

pub use config::{Config, ConfigError};
pub use error::{ClientError, RequestError, StartError, StreamError};
pub use handler::{Handler, HandlerError, Streams};
pub use pod_request::{PodCall, PodRequest, PodRequestError};
pub use protocol::{ChannelProtocol, RemoteCommand};
pub use request::{
    AttachRequest, ExecRequest, PortForwardRequest, StreamOptions, StreamingRequest,
};
pub use resize::{ResizeEvents, Resizer, TerminalSize};
pub use responder::Responder;
pub use server::StreamingServer;
pub use status::ExitCode;
pub use stdio::{Connection, Input, Output};
