//! SPDY behind HTTP/1.1 `Upgrade: SPDY/3.1`: exec, attach and port-forward of Kubernetes.
//!
//! ```text
//! > POST /exec/Yk3.. HTTP/1.1                        < HTTP/1.1 101 Switching Protocols
//! > Connection: Upgrade                              < Connection: Upgrade
//! > Upgrade: SPDY/3.1                                < Upgrade: SPDY/3.1
//! > X-Stream-Protocol-Version: v4.channel.k8s.io     < X-Stream-Protocol-Version: v4.channel.k8s.io
//! > (one line for each offer, the best first)        <
//! >                                                  < SYN_REPLY ...
//! > SYN_STREAM ...
//! ```
//!
//! After each blank line, the connection carries SPDY frames of version 3, and the HTTP client is the SPDY client. Those peers
//! (moby/spdystream at both ends) call their protocol SPDY/3.1, but it differs:
//!
//! - there is no flow control: they send no WINDOW_UPDATE and ignore it. Sessions created here have no
//!   windows; a slow reader stops the whole session, because the socket is not read;
//! - their client discards input in the same read as the 101, so a server sends nothing, not even SETTINGS, before the first frame
//!   has arrived ([`SettingsTiming::Never`](spdy_session::config::SettingsTiming::Never));
//! - their server ends a stream by RST_STREAM(CANCEL) and not by FIN: [`Channel`] reads that as the end,
//!   and ends its own streams in a way that both kinds of readers understand;
//! - proxies between the two lose buffered bytes when a server closes first: [`CloseLast`].
//!
//! Each side takes two steps: negotiate ([`connect`]; [`read_request`] or, if an HTTP server has already read the request,
//! [`negotiate`]), then pass the connection to [`client_builder`] or [`server_builder`].
//!
//! ```
//! use http::Request;
//! use spdy::client::OpenOptions;
//! use spdy::upgrade::{self, Channel, Limits};
//! use spdy::{HeaderBlock, SharedRuntime};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = SharedRuntime::tokio();
//! let (near, far) = tokio::io::duplex(4096);
//!
//! let server_runtime = runtime.clone();
//! tokio::spawn(async move {
//!     let offer = upgrade::read_request(far, Limits::default(), &server_runtime).await.expect("a request");
//!     let upgraded = offer.accept(&["echo.example"]).await.expect("a switch");
//!     let (mut accept, connection) = upgrade::server_builder().handshake(upgraded.into_io(), server_runtime);
//!     connection.spawn();
//!     while let Some(incoming) = accept.next().await {
//!         let mut channel = Channel::new(incoming.accept_raw(&HeaderBlock::new()).expect("a stream"));
//!         while let Some(Ok(bytes)) = channel.receive().await {
//!             channel.send(bytes).await.expect("room");
//!         }
//!     }
//! });
//!
//! let request = Request::post("http://localhost/echo").body(())?;
//! let upgraded = upgrade::connect(near, &request, &["echo.example"], Limits::default(), &runtime).await?;
//! assert_eq!(upgraded.protocol(), Some("echo.example"));
//! let (session, connection) = upgrade::client_builder().handshake(upgraded.into_io(), runtime);
//! connection.spawn();
//! let headers = HeaderBlock::from_iter([("streamtype", "data")]);
//! let mut channel = Channel::new(session.open(headers, OpenOptions::default()).await?);
//! channel.reply().await?;
//! channel.write_all(b"hello").await?;
//! channel.shutdown().await?;
//! let mut back = String::new();
//! channel.read_to_string(&mut back).await?;
//! assert_eq!(back, "hello");
//! # Ok(())
//! # }
//! ```

mod accept;
mod builders;
mod channel;
mod close_last;
mod connect;
mod error;
mod head;
mod refusal;
mod rewind;
mod switch;

pub use accept::{AcceptedUpgrade, UpgradeRequest, negotiate, read_request};
pub use builders::{IDLE_TIMEOUT, MAX_RESETS, MAX_STREAMS, client_builder, server_builder};
pub use channel::Channel;
pub use close_last::CloseLast;
pub use connect::connect;
pub use error::UpgradeError;
pub use head::{first_token, has_token};
pub use refusal::Refusal;
pub use rewind::Rewind;
pub use switch::{
    ACCEPTED_STREAM_PROTOCOL_VERSIONS, Limits, PROTOCOL, STREAM_PROTOCOL_VERSION, Upgraded,
};
