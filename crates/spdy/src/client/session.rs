//! A client session's handle: sends requests, opens raw streams, takes pushes.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{self, HeaderValue};
use http::{Method, Request};
use http_body::Body as _;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_http::request;
use spdy_session::config::Role;
use spdy_session::session::{Stats, StreamOptions};

use crate::body::{Body, BoxError};
use crate::client::push::Push;
use crate::client::response::ResponseFuture;
use crate::client::unclaimed_pushes::may_claim;
use crate::error::Error;
use crate::send_body::SendBody;
use crate::session::block_check;
use crate::session::entry::Entry;
use crate::session::push_limits::PushStats;
use crate::session::push_parent::PushParent;
use crate::session::shared::Shared;
use crate::session::state::State;
use crate::session::stream_ref::StreamRef;
use crate::stream::{OpenOptions, Stream, open_raw};
use crate::trace;

/// Handle of a session. It is cheap to clone and can be used in any task.
///
/// The session ends in order when the last clone and the last [`IncomingStreams`](crate::client::IncomingStreams) are dropped and
/// the last stream has ended.
#[derive(Debug)]
pub struct Session {
    pub(super) shared: Arc<Shared>,
}

impl Clone for Session {
    fn clone(&self) -> Self {
        Self::first(&self.shared)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.shared.command(|state| {
            state.owners -= 1;
            state.draining |= state.owners == 0 && !state.closing;
        });
    }
}

impl Session {
    /// Creates a handle; the session counts its handles.
    pub(super) fn first(shared: &Arc<Shared>) -> Self {
        shared.look(|state| state.owners += 1);
        Self {
            shared: shared.clone(),
        }
    }

    /// Sends `request`, whose URI must be absolute (`host:port` for CONNECT), and returns the response.
    ///
    /// A `priority` of `None` is [`Priority::HIGHEST`]. The request is written at once, or queued while the peer's limit of streams is reached: the most urgent first, then in the
    /// order of these calls. The body is sent while the future is polled, and by a task after the response's head arrived. Dropping
    /// the future before that cancels the exchange, and so does dropping the response's unread body.
    pub fn request<B>(
        &self,
        request: Request<B>,
        priority: impl Into<Option<Priority>>,
    ) -> ResponseFuture
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let priority = priority.into().unwrap_or_default();
        if self.shared.claims_pushes
            && request.body().is_end_stream()
            && let Some(push) = self.claim(&request)
        {
            let (head, _) = request.into_parts();
            return ResponseFuture::claimed(push, self.clone(), head, priority);
        }
        self.send(request, priority)
    }

    /// The push that answers `request`.
    fn claim<B>(&self, request: &Request<B>) -> Option<Push> {
        if !may_claim(request) {
            return None;
        }
        let version = self.shared.version;
        let key = self
            .shared
            .command(|state| state.claim(version, request.uri(), request.headers()))?;
        Push::of_key(&self.shared, key)
    }

    /// Takes all pushes that no request has claimed, in order of arrival. They can no longer be claimed.
    #[must_use = "dropping a push cancels it"]
    pub fn take_pushes(&self) -> Vec<Push> {
        let keys = self.shared.command(State::take_unclaimed);
        let push = |key| Push::of_key(&self.shared, key);
        keys.into_iter().filter_map(push).collect()
    }

    /// Counts of the pushes so far.
    #[must_use]
    pub fn push_stats(&self) -> PushStats {
        let stats = |state: &mut State| state.claims.as_ref().map(|claims| claims.stats);
        self.shared.look(stats).unwrap_or_default()
    }

    /// Like [`request`](Self::request), without looking for a push.
    pub(super) fn send<B>(&self, request: Request<B>, priority: Priority) -> ResponseFuture
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (mut head, body) = request.into_parts();
        let mut body = Body::wrap(body);
        if let Some(length) = body.size_hint().exact()
            && !head.headers.contains_key(header::CONTENT_LENGTH)
            && (length > 0 || expects_body(&head.method))
        {
            head.headers
                .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
        }
        // A deployed gateway mishandles FIN on the SYN_STREAM of an empty POST, so such requests end with DATA.
        let fin =
            body.is_end_stream() && !expects_body(&head.method) && head.method != Method::CONNECT;
        let version = self.shared.version;
        let block = request::encode(version, &head).map_err(Error::from);
        let block = match block.and_then(|block| {
            block_check::check_length(version, &block)?;
            Ok(block)
        }) {
            Ok(block) => block,
            Err(error) => return ResponseFuture::failed(error),
        };
        let open = StreamOptions {
            priority,
            associated_to: StreamId::ZERO,
            unidirectional: false,
            fin,
        };
        // One handle for the response; one for the body, if there is one.
        let mut entry = Entry::new(StreamId::ZERO, if fin { 1 } else { 2 });
        entry.no_body = head.method == Method::HEAD;
        let now = || self.shared.runtime.now();
        entry.span = trace::local_stream(Role::Client, now, Some((&head.method, &head.uri)));
        let opened = self.shared.command(|state| {
            state.exchanges.requests += 1;
            entry.push_parent = state.accepts_streams.then(|| {
                Arc::new(PushParent {
                    uri: head.uri,
                    headers: head.headers,
                })
            });
            state.open(entry, block, open, true)
        });
        let key = match opened {
            Ok(key) => key,
            Err(error) => return ResponseFuture::failed(error),
        };
        let stream = StreamRef::from_counted(self.shared.clone(), key);
        let body = (!fin).then(|| {
            let first = body.take_full();
            let stream = StreamRef::from_counted(self.shared.clone(), key);
            SendBody::new(stream, first, body, RstStatus::CANCEL)
        });
        ResponseFuture::new(stream, body, head.method)
    }

    /// Opens a raw stream, without HTTP; queued like a [`request`](Self::request).
    ///
    /// # Errors
    ///
    /// [`Error::Closing`] if the session accepts no new streams; [`Error::Headers`] if the headers cannot be encoded.
    pub async fn open(&self, headers: HeaderBlock, options: OpenOptions) -> Result<Stream, Error> {
        let stream = open_raw(&self.shared, headers, options, true)?;
        let id = poll_fn(|cx| stream.poll_opened(cx)).await?;
        Ok(Stream::new(stream, id))
    }

    /// Sends a PING and returns its round trip time.
    ///
    /// # Errors
    ///
    /// [`Error::Closing`] if the session ends before the echo. Some peers never answer: use a timeout.
    pub async fn ping(&self) -> Result<Duration, Error> {
        self.shared.ping().await
    }

    /// Accepts no new requests. Open and queued ones continue; then the session ends.
    pub fn shutdown(&self) {
        self.shared
            .command(|state| state.draining |= !state.closing);
    }

    /// Ends the session at once: open streams are lost.
    pub fn abort(&self) {
        self.shared.abort();
    }

    /// True if the session accepts no new requests: GOAWAY was received, the session was shut down, or it ended.
    #[must_use]
    pub fn is_closing(&self) -> bool {
        self.shared
            .look(|state| state.closing || state.draining || state.machine.is_closing())
    }

    /// Waits until the session has ended.
    pub async fn closed(&self) {
        self.shared.ended().await;
    }

    /// Why the session was lost; `None` if it was not.
    #[must_use]
    pub fn error(&self) -> Option<Error> {
        self.shared.error()
    }

    /// Number of open and queued streams.
    #[must_use]
    pub fn active_streams(&self) -> usize {
        self.shared.look(|state| state.active_streams())
    }

    /// The counters so far.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.shared.look(|state| state.machine.stats())
    }

    /// The version of SPDY.
    #[must_use]
    pub fn version(&self) -> Version {
        self.shared.version
    }
}

/// True for methods whose requests have a body, even if it is empty.
fn expects_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT)
}
