//! Sets up server sessions: [`handshake`] with the defaults, [`Builder`] for everything else.

use std::fmt;
use std::sync::Arc;

use spdy_frame::version::Version;
use spdy_http::push::PushForm;
use spdy_http::request::BadRequest;
use spdy_session::config::{Config, Role};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::metrics::Metrics;
use crate::runtime::SharedRuntime;
use crate::server::accept::Accept;
use crate::session::builder_options::session_options;
use crate::session::driver::Connection;
use crate::session::shared::{SessionOptions, Shared};

/// Creates a SPDY/3.1 session over `io` on tokio's runtime, with the defaults of [`Builder`]. To answer only requests,
/// [`serve`](crate::server::serve) is shorter; this is for accepting streams one by one.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # let (near, io) = tokio::io::duplex(4096);
/// # let (session, connection) = spdy::client::handshake(near);
/// # connection.spawn();
/// # let request = http::Request::get("http://example.org/a").body(spdy::Body::empty()).expect("a valid URL");
/// # let response = session.request(request, spdy::Priority::HIGHEST);
/// let (mut accept, connection) = spdy::server::handshake(io);
/// connection.spawn();
/// let incoming = accept.next().await.expect("the client sent a request");
/// let (request, responder) = incoming.into_request().expect("an http request");
/// assert_eq!(request.uri().path(), "/a");
/// responder.respond(http::Response::new(spdy::Body::from("hello"))).await.expect("the client is connected");
/// # assert_eq!(response.await.expect("a response").status(), 200);
/// # }
/// ```
#[cfg(feature = "tokio-runtime")]
pub fn handshake<T>(io: T) -> (Accept, Connection<T>)
where
    T: AsyncRead + AsyncWrite + Unpin,
{
    Builder::default().handshake(io, SharedRuntime::tokio())
}

/// Options of a server session. `Default` is SPDY/3.1.
///
/// An option whose documentation states no default has that of the field with its name in [`Config`](crate::Config).
#[derive(Clone)]
pub struct Builder {
    /// Boxed: the future that serves a session has room for its builder until it ends.
    config: Box<Config>,
    send_trailers: bool,
    push_form: PushForm,
    metrics: Option<Metrics>,
    pub(super) on_bad_request: Option<OnBadRequest>,
}

/// Called for each invalid request.
pub(super) type OnBadRequest = Arc<dyn Fn(&BadRequest) + Send + Sync>;

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("config", &self.config)
            .field("send_trailers", &self.send_trailers)
            .field("push_form", &self.push_form)
            .field("metrics", &self.metrics)
            .finish_non_exhaustive()
    }
}

session_options!(Builder);

impl Builder {
    /// The defaults of `version`.
    #[must_use]
    pub fn new(version: Version) -> Self {
        Self {
            config: Box::new(Config::new(Role::Server, version)),
            send_trailers: false,
            metrics: None,
            push_form: PushForm::default(),
            on_bad_request: None,
        }
    }

    /// How pushes are encoded: no form suits every client. Default: [one block](PushForm::OneBlock).
    #[must_use]
    pub fn push_form(mut self, form: PushForm) -> Self {
        self.push_form = form;
        self
    }

    /// Calls `callback` for each invalid request that was [answered](BadRequest::status) or reset before it reached
    /// the service. Applies to [`serve`](Self::serve) and similar methods; a server that accepts streams one by one
    /// gets the error from [`Incoming::into_request`](crate::server::Incoming::into_request). It must not block.
    #[must_use]
    pub fn on_bad_request(
        mut self,
        callback: impl Fn(&BadRequest) + Send + Sync + 'static,
    ) -> Self {
        self.on_bad_request = Some(Arc::new(callback));
        self
    }

    /// Creates a session over `io`. Nothing is sent or received until the connection runs.
    pub fn handshake<T>(self, io: T, runtime: SharedRuntime) -> (Accept, Connection<T>)
    where
        T: AsyncRead + AsyncWrite + Unpin,
    {
        let choices = SessionOptions {
            send_trailers: self.send_trailers,
            push_form: self.push_form,
            accepts_streams: true,
            metrics: self.metrics,
            claims: None,
        };
        let shared = Shared::new(*self.config, runtime, choices);
        (
            Accept {
                shared: shared.clone(),
            },
            Connection::new(io, shared),
        )
    }
}

impl Default for Builder {
    fn default() -> Self {
        Self::new(Version::V31)
    }
}
