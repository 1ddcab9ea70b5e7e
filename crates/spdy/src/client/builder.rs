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
/// Nothing is sent or received until the [`Connection`] runs: [`spawn`](Connection::spawn) it, or await [`run`](Connection::run)
/// concurrently with the requests.
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

/// Options of a client session. `Default` is SPDY/3.1.
///
/// An option whose documentation states no default has that of the field with its name in [`Config`](crate::Config).
#[derive(Clone, Debug)]
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

    /// Accepts pushes as responses: a GET of a pushed URL claims its push instead of sending a request, and the response's
    /// extensions contain a [`PushInfo`](crate::client::PushInfo). Unclaimed pushes are cancelled, or [taken](Session::take_pushes).
    ///
    /// Sets `max_concurrent_streams` and `settings_window_bytes` from `limits`; later calls override them.
    #[must_use]
    pub fn claim_pushes(mut self, limits: PushLimits) -> Self {
        self.config.max_concurrent_streams = limits.streams;
        self.config.settings_window_bytes = Some(limits.window_bytes);
        self.claims = Some(limits);
        self
    }

    /// Creates a session over `io`. Unless [pushes are claimed](Self::claim_pushes), SETTINGS forbids pushes, and pushes of the
    /// peer are refused.
    ///
    /// Nothing is sent or received until the connection runs. Requests may be made before that.
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

    /// Like `handshake`, and returns the peer's pushes, if they have the same origin as the associated request. Up to
    /// `max_concurrent_streams` pushes wait until they are taken.
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

    /// Like `handshake`, and returns every stream that the peer opens unchanged, associated or not: for raw protocols whose servers
    /// open streams too ([`server::Handle::open`] does). Streams are not parsed as HTTP, so pushes are not distinguished. Up to
    /// `max_concurrent_streams` streams wait until they are taken.
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

    /// Creates the state that is shared by the session, the connection and the receivers of the peer's streams.
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
