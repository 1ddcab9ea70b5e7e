//! Sets up client sessions: [`handshake`] with the defaults, [`Builder`] for everything else.

use std::sync::Arc;

use spdy_frame::version::Version;
use spdy_session::config::{Config, PushPolicy, Role};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::client::{IncomingStreams, Pushes, Session};
use crate::metrics::Metrics;
use crate::runtime::SharedRuntime;
use crate::session::builder_options::session_options;
use crate::session::driver::Connection;
use crate::session::push_limits::PushLimits;
use crate::session::shared::{SessionOptions, Shared};

/// A SPDY/3.1 session over `io` on tokio's runtime, with the defaults of [`Builder`].
///
/// Nothing moves until the [`Connection`] is run: [`spawn`](Connection::spawn) it, or await
/// [`run`](Connection::run) beside the requests.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), spdy::Error> {
/// # let (io, far) = tokio::io::duplex(4096);
/// # tokio::spawn(spdy::server::serve(far, |_| async { http::Response::new(spdy::Body::from("hello")) }));
/// let (session, connection) = spdy::client::handshake(io);
/// connection.spawn();
/// let request = http::Request::get("http://example.org/").body(spdy::Body::empty()).expect("a valid URL");
/// let response = session.request(request, spdy::Priority::HIGHEST).await?;
/// assert_eq!(response.status(), 200);
/// # Ok(())
/// # }
/// ```
#[cfg(feature = "tokio-runtime")]
pub fn handshake<T>(io: T) -> (Session, Connection<T>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    Builder::default().handshake(io, SharedRuntime::tokio())
}

/// How a client session is set up. `Default` is SPDY/3.1.
#[derive(Clone)]
pub struct Builder {
    config: Config,
    send_trailers: bool,
    metrics: Option<Metrics>,
    claims: Option<PushLimits>,
}

session_options!(Builder);

impl Builder {
    /// The defaults of `version`.
    #[must_use]
    pub fn new(version: Version) -> Self {
        Self {
            config: Config::new(Role::Client, version),
            send_trailers: false,
            metrics: None,
            claims: None,
        }
    }

    /// Accepts pushes to answer requests with: a GET of a pushed URL claims its push instead of sending a request, and the response's
    /// extensions hold a [`PushInfo`](crate::client::PushInfo). Unclaimed pushes are cancelled, or [taken](Session::take_pushes).
    ///
    /// `max_concurrent_streams` and `settings_window_bytes` become those of `limits`; what is set after it holds.
    #[must_use]
    pub fn claim_pushes(mut self, limits: PushLimits) -> Self {
        self.config.max_concurrent_streams = limits.streams;
        self.config.settings_window_bytes = Some(limits.window_bytes);
        self.claims = Some(limits);
        self
    }

    /// A session over `io`. Unless [pushes are claimed](Self::claim_pushes), SETTINGS forbids the peer to push, and its pushes are
    /// refused.
    ///
    /// Nothing moves until the connection is run, beside the requests; requests may be made at once.
    pub fn handshake<T>(mut self, io: T, runtime: SharedRuntime) -> (Session, Connection<T>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let claims = self.claims.take();
        let policy = match claims {
            Some(_) => PushPolicy::Accept,
            None => PushPolicy::Refuse,
        };
        let shared = self.share(runtime, policy, claims);
        (Session::first(&shared), Connection::new(io, shared))
    }

    /// As `handshake`, with the peer's pushes offered: those of the same origin as the request they belong to. They wait, up to
    /// `max_concurrent_streams`, until they are taken.
    pub fn handshake_with_pushes<T>(
        self,
        io: T,
        runtime: SharedRuntime,
    ) -> (Session, Pushes, Connection<T>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let shared = self.share(runtime, PushPolicy::Accept, None);
        (
            Session::first(&shared),
            Pushes::new(shared.clone()),
            Connection::new(io, shared),
        )
    }

    /// As `handshake`, with every stream that the peer opens offered unchanged, associated or not: for raw protocols whose servers open
    /// streams too ([`server::Handle::open`] does). They are not parsed as HTTP, so pushes are not distinguished. They wait, up to
    /// `max_concurrent_streams`, until they are taken.
    ///
    /// [`server::Handle::open`]: crate::server::Handle::open
    pub fn handshake_with_streams<T>(
        self,
        io: T,
        runtime: SharedRuntime,
    ) -> (Session, IncomingStreams, Connection<T>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let shared = self.share(runtime, PushPolicy::AcceptUnassociated, None);
        let session = Session::first(&shared);
        let offers = IncomingStreams::new(session.clone());
        (session, offers, Connection::new(io, shared))
    }

    /// The state that the session, the connection and the receivers of the peer's streams share.
    fn share(
        mut self,
        runtime: SharedRuntime,
        policy: PushPolicy,
        claims: Option<PushLimits>,
    ) -> Arc<Shared> {
        self.config.push = policy;
        let choices = SessionOptions {
            send_trailers: self.send_trailers,
            accepts_streams: policy != PushPolicy::Refuse,
            metrics: self.metrics,
            claims,
            ..SessionOptions::default()
        };
        Shared::new(self.config, runtime, choices)
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new(Version::V31)
    }
}
