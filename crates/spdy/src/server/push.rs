//! Pushes: responses sent before they are requested (SPDY/3.1 §3.3).

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, Uri};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_http::push::{self, PushForm};
use spdy_http::request;
use spdy_session::session::StreamOptions;

use crate::body::BoxError;
use crate::error::Error;
use crate::server::responder::{Kind, Responder, ResponseBodyFuture};
use crate::session::block_check;
use crate::session::entry::Entry;
use crate::session::shared::Shared;
use crate::session::state::State;
use crate::session::stream_ref::StreamRef;

/// The stream of a request, found in the request's extensions: its ID and priority. It can push along with the response.
#[derive(Clone, Debug)]
pub struct Pusher {
    shared: Arc<Shared>,
    id: StreamId,
    priority: Priority,
}

impl Pusher {
    pub(super) fn new(shared: Arc<Shared>, id: StreamId, priority: Priority) -> Self {
        Self {
            shared,
            id,
            priority,
        }
    }

    /// The ID of the request's stream.
    #[must_use]
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The priority that the client gave the request.
    #[must_use]
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// Like [`Responder::push`].
    ///
    /// # Errors
    ///
    /// As for [`Responder::push`]; also [`Error::PushRefused`] after the request was answered completely.
    pub fn push(&self, request: &Request<()>, priority: Priority) -> Result<Responder, Error> {
        open_push(&self.shared, self.id, request, priority)
    }

    /// Pushes `response` as the answer to `request`. In any [form](PushForm) the push is announced when this returns.
    ///
    /// # Errors
    ///
    /// As [`push`](Self::push) and [`Responder::start`].
    pub fn push_response<B>(
        &self,
        request: &Request<()>,
        priority: Priority,
        response: Response<B>,
    ) -> Result<ResponseBodyFuture, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        self.push(request, priority)?.start(response)
    }
}

/// Opens the stream of a push. In the one-block form it is only reserved.
pub(super) fn open_push(
    shared: &Arc<Shared>,
    parent: StreamId,
    request: &Request<()>,
    priority: Priority,
) -> Result<Responder, Error> {
    if *request.method() != Method::GET {
        return Err(Error::PushRefused {
            reason: "only GET can be pushed",
        });
    }
    let (stream, kind) = match shared.push_form {
        PushForm::TwoBlocks | PushForm::VersionTwice => {
            let block = push::encode_promise(shared.version, request.uri())?;
            block_check::check_length(shared.version, &block)?;
            let key = shared.command(|state| {
                state.check_origin(parent, request.uri())?;
                let key = state.insert(Entry::new(StreamId::ZERO, 1));
                let written = state.write_push_syn(key, &block, parent, priority);
                written.inspect_err(|_| drop(state.entries.remove(key)))?;
                Ok::<_, Error>(key)
            })?;
            (StreamRef::from_counted(shared.clone(), key), Kind::Push)
        }
        PushForm::OneBlock => {
            let key = shared.look(|state| {
                state.check_origin(parent, request.uri())?;
                // A client with a limit of 0 accepts no pushes, so the push is rejected here. For other clients the limit is
                // checked with the response.
                if let limit @ 0 = state.machine.max_open_streams() {
                    return Err(Error::TooManyStreams { limit });
                }
                Ok::<_, Error>(state.insert(Entry::new(StreamId::ZERO, 1)))
            })?;
            let stream = StreamRef::from_counted(shared.clone(), key);
            (stream, Kind::Deferred { parent, priority })
        }
    };
    let id = stream.id();
    Ok(Responder::of_push(stream, id, kind, request.uri().clone()))
}

impl State {
    /// The request `parent`, if its response has not ended.
    fn check_parent(&self, parent: StreamId) -> Result<&Entry, Error> {
        let entry = self.by_id.get(&parent).map(|key| &self.entries[*key]);
        entry
            .filter(|entry| !entry.fin_sent)
            .ok_or(Error::PushRefused {
                reason: "the request was already answered or cancelled",
            })
    }

    /// Checks that `uri` may be pushed with the response to `parent`.
    fn check_origin(&self, parent: StreamId, uri: &Uri) -> Result<(), Error> {
        let request = self.check_parent(parent)?.request.as_ref();
        let version = self.machine.config().version;
        // Decoded again, because storing a URI for each stream would add a cost to every request.
        let parent = request.and_then(|it| request::decode_uri(version, &it.headers).ok());
        match parent {
            Some(parent) if push::is_same_origin(&parent, uri) => Ok(()),
            _ => Err(Error::PushRefused {
                reason: "the URL has a different origin",
            }),
        }
    }

    /// Writes the SYN_STREAM of the push `key`, which gives it its ID.
    pub(super) fn write_push_syn(
        &mut self,
        key: usize,
        block: &HeaderBlock,
        parent: StreamId,
        priority: Priority,
    ) -> Result<(), Error> {
        self.check_parent(parent)?;
        let open = StreamOptions {
            priority,
            associated_to: parent,
            unidirectional: true,
            fin: false,
        };
        self.open_entry(key, block, open)
    }
}
