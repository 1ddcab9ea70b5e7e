//! Sends messages on a request stream: heads, bodies at QUIC's pace, trailers, the end of the stream.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body as _, Frame};
use spdy::body::Body;
use spdy_net_core::priority::HttpPriority;
use spdy_net_core::timing::progress_timeout::ProgressTimeout;
use spdy_session::observe::Direction;

use crate::code::Code;
use crate::compression::HeaderCompression;
use crate::fault::Fault;
use crate::fields;
use crate::frame::{frame, kind, put_head};
use crate::qpack::{Field, section_len};
use crate::quinn_shims::send_budget::{BudgetedPiece, SendBudget};
use crate::quinn_shims::wake_detector::WakeDetector;
use crate::stream_observer::StreamObserver;

/// Maximum piece of a body that is passed to QUIC at once, bytes; each piece is a frame.
const PIECE_BYTES: usize = 32 * 1024;

/// The sending side of a stream. Dropping it before its end resets the stream: quinn would finish it, so that a truncated body
/// would look complete.
pub(crate) struct SendingStream {
    stream: quinn::SendStream,
    watch: Option<StreamObserver>,
    /// Bytes that QUIC has not accepted yet.
    queue: Vec<Bytes>,
    /// Timeout for a peer that accepts no bytes, or too few; `None`: no timeout.
    stall: Option<ProgressTimeout>,
    wake: Arc<WakeDetector>,
    compression: HeaderCompression,
    reset_code: Option<Code>,
}

/// Why QUIC accepts no more bytes of a stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum BlockCause {
    /// Other streams used up the connection's window.
    OtherStreams,
    /// The stream's own window or the connection's window is closed.
    Unknown,
}

impl BlockCause {
    /// The cause for a stream whose bytes were not accepted; `is_woken`: QUIC had woken it.
    fn of(is_woken: bool) -> Self {
        match is_woken {
            true => Self::OtherStreams,
            false => Self::Unknown,
        }
    }
}

/// Number of priority values for the streams of one urgency.
const URGENCY_RANGE: i32 = 1 << 26;

/// The stream's priority in quinn, which sends higher values first, and shares among equal ones. Each urgency has a range of
/// values. Within it, older streams have higher values, and incremental streams share the lowest value (RFC 9218 §10).
fn quic_priority(precedence: HttpPriority, stream_id: u64) -> i32 {
    let level = (7 - i32::from(precedence.urgency)) * URGENCY_RANGE;
    if precedence.incremental {
        return level;
    }
    let age = i32::try_from(stream_id / 4).unwrap_or(URGENCY_RANGE);
    level + URGENCY_RANGE - 1 - age.min(URGENCY_RANGE - 2)
}

impl SendingStream {
    pub(crate) fn new(
        stream: quinn::SendStream,
        watch: Option<StreamObserver>,
        precedence: HttpPriority,
        stall: Option<ProgressTimeout>,
        compression: HeaderCompression,
    ) -> Self {
        let sending = Self {
            stream,
            watch,
            queue: Vec::new(),
            stall,
            wake: Arc::default(),
            compression,
            reset_code: Some(Code::REQUEST_CANCELLED),
        };
        sending.set_priority(precedence);
        sending
    }

    /// The stream's ID.
    pub(crate) fn id(&self) -> u64 {
        self.stream.id().into()
    }

    /// Sets the priority of the stream.
    pub(crate) fn set_priority(&self, precedence: HttpPriority) {
        let _ = self
            .stream
            .set_priority(quic_priority(precedence, self.id())); // a stream that is gone needs no priority
    }

    /// True if the peer accepts a head or trailers with `fields` (RFC 9114 §4.2.2).
    pub(crate) fn takes(&self, fields: &[Field]) -> bool {
        section_len(fields) <= self.compression.max_field_section()
    }

    /// Sends a head or trailers, if the peer accepts that size; bytes that QUIC does not accept are queued before later output.
    pub(crate) async fn headers(
        &mut self,
        fields: &[Field],
        room: &SendBudget,
    ) -> Result<(), Fault> {
        if !self.takes(fields) {
            let most = self.compression.max_field_section();
            let len = section_len(fields);
            let reason = format!("header fields have {len} bytes, limit of the peer {most}");
            return Err(Fault::Stream(Code::INTERNAL_ERROR, reason));
        }
        let block = self.compression.encode(self.id(), fields);
        if let Some(watch) = &self.watch {
            watch.headers(Direction::Sent, fields);
            watch.frame(Direction::Sent, kind::HEADERS, block.len() as u64);
        }
        self.queue = vec![frame(kind::HEADERS, &block)];
        let mut released = room.released_bytes();
        std::future::poll_fn(|cx| self.poll_queue(cx, room, &mut released)).await
    }

    /// Queues the head of a DATA frame. The queue must be empty.
    fn queue_data(&mut self, len: usize) {
        let mut head = BytesMut::with_capacity(16);
        put_head(&mut head, kind::DATA, len);
        if let Some(watch) = &self.watch {
            watch.frame(Direction::Sent, kind::DATA, len as u64);
        }
        self.queue = vec![head.freeze()];
    }

    /// Passes the queue and `piece` to QUIC. Returns how many bytes of the piece QUIC accepted and, if it did not accept all, the
    /// reason.
    fn write(
        &mut self,
        cx: &mut Context<'_>,
        mut piece: BudgetedPiece,
    ) -> Result<(usize, Option<BlockCause>), Fault> {
        let (len, queued) = (piece.len(), self.queue.len());
        let mut bytes = std::mem::take(&mut self.queue);
        bytes.append(&mut piece.chunks);
        let waker = self.wake.waker(cx);
        let mut by_quic = Context::from_waker(&waker);
        let (mut blocked, mut on_wake) = (None, BlockCause::of(self.wake.take_woken()));
        while blocked.is_none() && bytes.iter().any(|bytes| !bytes.is_empty()) {
            let writing = pin!(self.stream.write_chunks(&mut bytes)).poll(&mut by_quic);
            match writing {
                Poll::Ready(written) => {
                    self.moved(written?.bytes);
                    on_wake = BlockCause::Unknown;
                }
                Poll::Pending => blocked = Some(on_wake),
            }
        }
        piece.chunks = bytes.split_off(queued);
        self.queue = bytes;
        Ok((len - piece.give_back(), blocked))
    }

    /// Ready when QUIC has accepted the whole queue, or the timeout for the peer's window has expired.
    fn poll_queue(
        &mut self,
        cx: &mut Context<'_>,
        room: &SendBudget,
        released: &mut u64,
    ) -> Poll<Result<(), Fault>> {
        let waker = self.wake.waker(cx);
        let mut by_quic = Context::from_waker(&waker);
        let mut on_wake = BlockCause::of(self.wake.take_woken());
        while !self.is_queue_empty() {
            let writing = pin!(self.stream.write_chunks(&mut self.queue)).poll(&mut by_quic);
            match writing {
                Poll::Ready(Ok(written)) => {
                    self.moved(written.bytes);
                    on_wake = BlockCause::Unknown;
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => return self.poll_blocked(cx, on_wake, room, released).map(Err),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Ready when QUIC has accepted nothing for too long.
    fn poll_blocked(
        &mut self,
        cx: &mut Context<'_>,
        blocked: BlockCause,
        room: &SendBudget,
        released: &mut u64,
    ) -> Poll<Fault> {
        match blocked {
            BlockCause::OtherStreams => self.poll_standstill(cx, room, released),
            BlockCause::Unknown => self.poll_stall(cx),
        }
    }

    /// Records that the peer accepted `bytes`.
    fn moved(&mut self, bytes: usize) {
        self.stall.iter_mut().for_each(|stall| stall.moved(bytes));
    }

    /// Ready when the timeout for the peer's progress has expired.
    fn poll_stall(&mut self, cx: &mut Context<'_>) -> Poll<Fault> {
        let slow = |error: std::io::Error| Fault::Slow(error.to_string());
        match &mut self.stall {
            Some(stall) => stall.poll(cx).map(slow),
            None => Poll::Pending,
        }
    }

    /// Like [`poll_stall`](Self::poll_stall), but bytes of any stream of the connection count as the peer's progress.
    fn poll_standstill(
        &mut self,
        cx: &mut Context<'_>,
        room: &SendBudget,
        released: &mut u64,
    ) -> Poll<Fault> {
        let so_far = room.released_bytes();
        if so_far > *released {
            self.moved(usize::try_from(so_far - *released).unwrap_or(usize::MAX));
            *released = so_far;
        }
        self.poll_stall(cx)
    }

    fn is_queue_empty(&self) -> bool {
        self.queue.iter().all(Bytes::is_empty)
    }

    /// Finishes the stream: everything was written.
    pub(crate) fn finish(&mut self) -> Result<(), Fault> {
        self.reset_code = None;
        let lost = |_| Fault::Ended(Code::NO_ERROR);
        self.stream.finish().map_err(lost)
    }

    /// Resets the stream with `code`, now or when this is dropped.
    pub(crate) fn reset_with(&mut self, code: Code) {
        if self.reset_code.is_some() {
            self.reset_code = Some(code);
        }
    }

    /// Completes when the peer stopped the stream, or has acknowledged all of a finished stream.
    pub(crate) fn stopped(&self) -> impl Future<Output = ()> + Send + 'static {
        let stopped = self.stream.stopped();
        async move {
            let _ = stopped.await; // a lost connection is reported elsewhere
        }
    }

    /// Waits until the peer has acknowledged all bytes of the finished stream, as long as the peer makes progress. Received packets
    /// alone are not progress: the peer may repeat the same acknowledgements.
    pub(crate) async fn delivered(
        mut self,
        room: &SendBudget,
        precedence: impl Fn(&mut Context<'_>) -> HttpPriority,
    ) -> Result<(), Fault> {
        let mut released = room.released_bytes();
        let mut stopped = pin!(self.stopped());
        std::future::poll_fn(|cx| {
            if stopped.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Ok(()));
            }
            self.set_priority(precedence(cx));
            self.poll_standstill(cx, room, &mut released).map(Err)
        })
        .await
    }

    /// Writes `body`, and ends the stream. `precedence` is called before each piece, because it may change.
    pub(crate) async fn body(
        &mut self,
        mut body: Body,
        room: &SendBudget,
        precedence: impl Fn(&mut Context<'_>) -> HttpPriority,
    ) -> Result<(), Fault> {
        // `framed` is the rest of a frame whose head was already written.
        let (mut queue, mut framed, mut data) = (room.claim(), Bytes::new(), Bytes::new());
        self.wake = Arc::new(WakeDetector::with_notifier(queue.notifier()));
        let mut released = room.released_bytes();
        let trailers = std::future::poll_fn(|cx| {
            let precedence = precedence(cx);
            self.set_priority(precedence);
            loop {
                if !framed.is_empty() || !data.is_empty() {
                    let next = if framed.is_empty() { &data } else { &framed };
                    let Poll::Ready(piece) = queue.poll_reserve(cx, precedence, next, PIECE_BYTES)
                    else {
                        return self.poll_standstill(cx, room, &mut released).map(Err);
                    };
                    if framed.is_empty() {
                        framed = data.split_to(piece.len());
                        self.queue_data(framed.len());
                    }
                    let (taken, blocked) = self.write(cx, piece)?;
                    framed.advance(taken);
                    queue.record_sent(taken);
                    let Some(blocked) = blocked else {
                        continue;
                    };
                    queue.blocked(precedence);
                    if taken > 0 {
                        released = room.released_bytes();
                    }
                    return self.poll_blocked(cx, blocked, room, &mut released).map(Err);
                }
                if body.is_end_stream() {
                    return Poll::Ready(Ok(None));
                }
                let Poll::Ready(next) = Pin::new(&mut body).poll_frame(cx) else {
                    return Poll::Pending;
                };
                let internal = |error: &dyn std::fmt::Display| {
                    Fault::Stream(Code::INTERNAL_ERROR, format!("body failed: {error}"))
                };
                let next = next.transpose().map_err(|error| internal(&error))?;
                match next.map(Frame::into_data) {
                    Some(Ok(more)) => data = more,
                    Some(Err(frame)) => return Poll::Ready(Ok(frame.into_trailers().ok())),
                    None => return Poll::Ready(Ok(None)),
                }
            }
        });
        let trailers: Option<HeaderMap> = trailers.await?;
        if let Some(trailers) = trailers {
            self.headers(&fields::encode_trailers(&trailers), room)
                .await?;
        }
        self.finish()
    }
}

impl Drop for SendingStream {
    fn drop(&mut self) {
        if let Some(code) = self.reset_code {
            let _ = self.stream.reset(code.wire()); // a stream that is gone needs no reset
        }
    }
}

/// The observer of a stream, if there is one.
pub(crate) fn stream_observer(
    stream: &quinn::SendStream,
    counters: &Arc<spdy_net_core::header_bytes::HeaderByteCounters>,
    tap: Option<spdy_net_core::tap::ConnectionTap>,
) -> StreamObserver {
    StreamObserver {
        stream_id: stream.id().into(),
        counters: counters.clone(),
        tap,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urgency_goes_before_age_and_age_before_those_that_share() {
        let of = |urgency, incremental, id| {
            let precedence = HttpPriority {
                urgency,
                incremental,
            };
            quic_priority(precedence, id)
        };
        let last = 4 * ((1 << 60) - 1);
        let order = [
            of(0, false, 400),
            of(0, false, 404),
            of(0, false, last),
            of(0, true, 0),
            of(1, false, 0),
            of(7, false, last),
            of(7, true, 0),
        ];
        assert!(order.is_sorted_by(|a, b| a > b), "{order:?}");
        assert_eq!(of(3, true, 0), of(3, true, 4));
        assert_eq!(of(7, true, 0), 0);
    }
}
