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
//! From the byte behind each blank line on, the connection carries SPDY frames of version 3, and the HTTP
//! client is the SPDY client. What those peers (moby/spdystream at both ends) speak is called SPDY/3.1, and
//! is not quite that:
//!
//! - there is no flow control: they send no WINDOW_UPDATE and heed none. Sessions made here run without
//!   windows; a slow reader stops the whole session, by not reading the socket;
//! - their client discards input in the same read as the 101, so a server sends nothing, not even SETTINGS, before the first frame came
//!   ([`SettingsTiming::Never`]);
//! - their server ends a stream by RST_STREAM(CANCEL) and not by FIN: [`Channel`] reads that as the end,
//!   and ends its own streams so that both kinds of reader understand;
//! - proxies between the two lose what is under way when a server closes first: [`CloseLast`].
//!
//! Two sides, each in two steps: agree ([`connect`]; [`read_request`] or, where an HTTP server has read the
//! request already, [`negotiate`]), then hand the connection to [`client_builder`] or [`server_builder`].
//!
//! ```
//! use http::Request;
//! use spdy::client::OpenOptions;
//! use spdy::upgrade::{self, Channel, Limits};
//! use spdy::{HeaderBlock, SharedRuntime, TokioRuntime};
//! use tokio::io::{AsyncReadExt, AsyncWriteExt};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let runtime = SharedRuntime::new(TokioRuntime::start());
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

mod channel;
mod close_last;
mod connect;
mod error;
mod head;
mod offer;
mod rewound;

use std::time::Duration;

use http::{HeaderMap, HeaderName};
use spdy_frame::version::Version;
use spdy_session::config::{Config, SettingsTiming};

use crate::{client, server};

pub use channel::Channel;
pub use close_last::CloseLast;
pub use connect::connect;
pub use error::UpgradeError;
pub use head::{first_token, has_token};
pub use offer::{AcceptedUpgrade, Refusal, UpgradeRequest, negotiate, read_request};
pub use rewound::Rewind;

/// Value of the `Upgrade` header.
pub const PROTOCOL: &str = "SPDY/3.1";
/// What is spoken over the streams: offered by a client, one line each; chosen by the server.
pub const STREAM_PROTOCOL_VERSION: HeaderName =
    HeaderName::from_static("x-stream-protocol-version");
/// What a server that answered 403 would have taken, one line each.
pub const ACCEPTED_STREAM_PROTOCOL_VERSIONS: HeaderName =
    HeaderName::from_static("x-accepted-stream-protocol-versions");

/// Streams that may be open at once, either way. Peers announce no limit and heed none, and a forwarded
/// port needs two for each connection; beyond, the client gets REFUSED_STREAM.
pub const MAX_STREAMS: u32 = 1000;
/// Streams that a client may reset in ten seconds before the session ends. Over the default of
/// [`FloodLimits`](spdy_session::config::FloodLimits): `kubectl port-forward` resets the data stream of
/// each connection that it closes.
pub const MAX_RESETS: u32 = 10_000;
/// How long a server keeps a session without streams, and either side a session without traffic in either direction, whatever is open:
/// the kubelet's four hours. A peer that sends anything, even a PING, may leave its input unread without limit: a terminal held by Ctrl-S
/// is no attack, a forwarded port with an idle program no fault, and a command that writes all day need not read its stdin.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 3600);

/// What is taken from the peer before the switch.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of a head, blank line included. Default 16 KiB.
    pub head_bytes: usize,
    /// Header lines of a head. Default 100.
    pub header_lines: usize,
    /// Bytes of a refusal's body that a client keeps; the rest is not read. Default 64 KiB.
    pub refusal_bytes: usize,
    /// From the first byte to the switch, or to the end of the refusal, which is reported as far as it came by then. Default 30 s.
    pub timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head_bytes: 16 * 1024,
            header_lines: 100,
            refusal_bytes: 64 * 1024,
            timeout: Duration::from_secs(30),
        }
    }
}

/// A connection that has switched: bytes from here on are frames.
#[derive(Debug)]
pub struct Upgraded<T> {
    io: Rewind<T>,
    headers: HeaderMap,
    protocol: Option<String>,
}

impl<T> Upgraded<T> {
    /// The sub-protocol agreed upon; `None` if the server named none.
    #[must_use]
    pub fn protocol(&self) -> Option<&str> {
        self.protocol.as_deref()
    }

    /// The headers of the 101 (for a server: of the request).
    #[must_use]
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The connection, for a handshake. What came behind the head is read from it first.
    #[must_use]
    pub fn into_io(self) -> Rewind<T> {
        self.io
    }
}

/// A client session as these peers need it: no windows, no greeting. It ends when nothing has crossed for
/// [`IDLE_TIMEOUT`]; with [`keepalive`](client::Builder::keepalive) sooner, and then
/// [`silence_timeout`](Config::silence_timeout) may be `None`.
#[must_use]
pub fn client_builder() -> client::Builder {
    let mut builder = client::Builder::new(Version::V31);
    without_flow_control(builder.config_mut());
    builder
}

/// A server session as these peers need it: no windows, no greeting, and GOAWAY only when the last stream
/// has ended, since they stop reading at it.
#[must_use]
pub fn server_builder() -> server::Builder {
    let mut builder = server::Builder::new(Version::V31);
    let config = builder.config_mut();
    without_flow_control(config);
    config.early_goaway = false;
    config.idle_timeout = Some(IDLE_TIMEOUT);
    builder
}

fn without_flow_control(config: &mut Config) {
    config.flow_control = false;
    config.write_timeout = None;
    config.silence_timeout = Some(IDLE_TIMEOUT);
    config.settings_timing = SettingsTiming::Never;
    config.max_concurrent_streams = MAX_STREAMS;
    config.assumed_peer_streams = MAX_STREAMS;
    config.floods.aborted_streams = MAX_RESETS;
}
