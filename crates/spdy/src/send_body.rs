//! Sends a body on a stream, at the pace of the peer.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::Body as _;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_http::trailers;
use spdy_session::config::Role;

use crate::body::Body;
use crate::error::Error;
use crate::session::block_check;
use crate::session::stream_ref::StreamRef;

/// Resolves when the last byte, with FIN, was passed to the session; fails when the body or the stream does.
///
/// The body is polled only when all its earlier output was accepted, so at most one of its pieces is held here.
#[derive(Debug)]
pub(crate) struct SendBody {
    stream: StreamRef,
    body: Body,
    rest: Bytes,
    /// Sent after `rest`. FIN is set on an empty DATA frame after them: two of the known peers wait forever on HEADERS with FIN.
    trailers: Option<HeaderBlock>,
    last: bool,
    /// The status of the RST_STREAM if the body fails.
    on_failure: RstStatus,
}

impl SendBody {
    /// Creates the future; `first` was already taken from the body.
    pub(crate) fn new(stream: StreamRef, first: Bytes, body: Body, on_failure: RstStatus) -> Self {
        let last = body.is_end_stream();
        Self {
            stream,
            body,
            rest: first,
            trailers: None,
            last,
            on_failure,
        }
    }
}

impl Future for SendBody {
    type Output = Result<(), Error>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            if let Some(block) = &this.trailers {
                ready!(this.stream.poll_send_headers(cx, block))?;
                this.trailers = None;
            }
            if !this.rest.is_empty() || this.last {
                ready!(this.stream.poll_send(cx, &mut this.rest, this.last))?;
                if this.last {
                    return Poll::Ready(Ok(()));
                }
            }
            let frame = match Pin::new(&mut this.body).poll_frame(cx) {
                Poll::Ready(frame) => frame,
                // An idle body must not outlive its stream.
                Poll::Pending => return this.stream.poll_failure(cx).map(Err),
            };
            match frame {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => {
                        this.rest = data;
                        this.last = this.body.is_end_stream();
                    }
                    Err(frame) => {
                        if let Ok(trailers) = frame.into_trailers()
                            && this.stream.shared.send_trailers
                        {
                            let version = this.stream.shared.version;
                            let block = trailers::encode(version, &trailers);
                            if let Err(error) = block_check::check_length(version, &block) {
                                this.stream.reset(this.on_failure);
                                return Poll::Ready(Err(error));
                            }
                            this.trailers = Some(block);
                        }
                    }
                },
                Some(Err(error)) => {
                    match this.stream.shared.role {
                        Role::Client => this.stream.reset(this.on_failure),
                        // The head announced the response, and the bytes before the failure may be useful.
                        Role::Server => this.stream.reset_behind_output(this.on_failure),
                    }
                    return Poll::Ready(Err(Error::Body(Arc::new(error))));
                }
                None => this.last = true,
            }
        }
    }
}
