//! A counted reference to one stream: used by bodies, responders and raw streams.

use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;

use crate::error::Error;
use crate::session::entry::{Entry, Inbound, register};
use crate::session::shared::Shared;
use crate::session::state::State;
use crate::trace::{self, StreamEnd};

/// One handle of a stream.
#[derive(Debug)]
pub(crate) struct StreamRef {
    pub(crate) shared: Arc<Shared>,
    key: usize,
}

impl Clone for StreamRef {
    fn clone(&self) -> Self {
        self.shared
            .look(|state| state.entries[self.key].handles += 1);
        Self {
            shared: self.shared.clone(),
            key: self.key,
        }
    }
}

impl Drop for StreamRef {
    fn drop(&mut self) {
        // The entry holds wakers: it is dropped after the lock is released.
        let mut released_entry = None;
        self.shared
            .command(|state| released_entry = state.release(self.key));
        if let Some(mut entry) = released_entry
            && let Some(span) = entry.span.take()
        {
            let end = StreamEnd {
                id: entry.id,
                sent_bytes: entry.sent_bytes,
                received_bytes: entry.received_bytes,
                error: entry.failure.as_ref(),
            };
            trace::stream_ended(*span, &end, || self.shared.runtime.now());
        }
    }
}

impl StreamRef {
    /// Creates one of the `handles` that the entry `key` already counts.
    pub(crate) fn from_counted(shared: Arc<Shared>, key: usize) -> Self {
        Self { shared, key }
    }

    /// Runs `act` on the state and the stream's key.
    pub(crate) fn command<R>(&self, act: impl FnOnce(&mut State, usize) -> R) -> R {
        self.shared.command(|state| act(state, self.key))
    }

    /// Accesses the state and the stream's key, without waking any task.
    pub(crate) fn look_all<R>(&self, look: impl FnOnce(&mut State, usize) -> R) -> R {
        self.shared.look(|state| look(state, self.key))
    }

    /// Accesses the stream, without waking any task.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut Entry) -> R) -> R {
        self.shared.look(|state| look(&mut state.entries[self.key]))
    }

    /// The stream's ID; 0 while it is queued.
    pub(crate) fn id(&self) -> StreamId {
        self.look(|entry| entry.id)
    }

    /// Sends RST_STREAM, unless both halves have ended. Wakes other tasks that wait on the stream: when an upload fails, another
    /// task may be reading the response.
    pub(crate) fn reset(&self, status: RstStatus) {
        let waiting = self.command(|state, key| {
            let entry = &state.entries[key];
            if entry.is_done() {
                return [None, None];
            }
            let id = entry.id;
            state.reset(key, status, Error::ResetByUs { id, status });
            let entry = &mut state.entries[key];
            [entry.reader.take(), entry.writer.take()]
        });
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Sends RST_STREAM(CANCEL), unless all input was received.
    pub(crate) fn cancel_unless_received(&self) {
        if !self.look(|entry| entry.fin_received || entry.failure.is_some()) {
            self.reset(RstStatus::CANCEL);
        }
    }

    /// Discards the rest of the input.
    pub(crate) fn discard_inbound(&self) {
        self.command(|state, key| {
            let entry = &mut state.entries[key];
            entry.discard = true;
            let id = entry.id;
            state.drop_unread(key);
            state.machine.discard(id, 0);
        });
    }

    /// Ready when the stream has an ID, even if it has failed since: the kubelet answers, sends and resets within one read, and its
    /// output must still be delivered.
    pub(crate) fn poll_opened(&self, cx: &mut Context<'_>) -> Poll<Result<StreamId, Error>> {
        self.shared.watch_run();
        let mut old = None;
        self.look(|entry| match (entry.id, &entry.failure) {
            (id, _) if !id.is_zero() => Poll::Ready(Ok(id)),
            (_, Some(failure)) => Poll::Ready(Err(failure.clone())),
            _ => {
                register(&mut entry.reader, cx.waker(), &mut old);
                Poll::Pending
            }
        })
    }

    /// The peer's SYN_REPLY, once.
    pub(crate) fn poll_reply(&self, cx: &mut Context<'_>) -> Poll<Result<HeaderBlock, Error>> {
        self.shared.watch_run();
        let mut old = None;
        self.look(|entry| {
            if let Some(reply) = entry.reply.take() {
                return Poll::Ready(Ok(reply));
            }
            if let Some(failure) = &entry.failure {
                return Poll::Ready(Err(failure.clone()));
            }
            if entry.answered || entry.fin_received {
                return Poll::Ready(Err(Error::NoReply { id: entry.id }));
            }
            register(&mut entry.reader, cx.waker(), &mut old);
            Poll::Pending
        })
    }

    /// The next received item; `None` after FIN. DATA must still be [consumed](Self::consume).
    pub(crate) fn poll_inbound(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Inbound, Error>>> {
        self.shared.watch_run();
        let mut old = None;
        self.look(|entry| {
            let item = ready!(poll_entry(entry, cx, &mut old));
            Poll::Ready(item)
        })
    }

    /// The next received item, and whether it is the last; `None` after FIN. The credit of DATA is returned at once.
    pub(crate) fn poll_body(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<(Inbound, bool), Error>>> {
        self.shared.watch_run();
        let mut old = None;
        self.shared.command_if(|state| {
            let entry = &mut state.entries[self.key];
            let Poll::Ready(item) = poll_entry(entry, cx, &mut old) else {
                return (Poll::Pending, false);
            };
            let last = entry.is_drained();
            let bytes = match &item {
                Some(Ok(Inbound::Data(data))) => data.len(),
                _ => 0,
            };
            state.consume(self.key, bytes);
            (
                Poll::Ready(item.map(|item| item.map(|item| (item, last)))),
                bytes > 0,
            )
        })
    }

    /// Returns credit for `bytes` of consumed DATA.
    pub(crate) fn consume(&self, bytes: usize) {
        self.command(|state, key| state.consume(key, bytes));
    }

    /// Queues as much of `data` as there is room for. Ready when all of it was queued, the last part with FIN if `fin`.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        data: &mut Bytes,
        fin: bool,
    ) -> Poll<Result<(), Error>> {
        self.shared.watch_run();
        let mut old = None;
        self.shared.command_if(|state| {
            let before = data.len();
            let poll = state.send(self.key, data, fin);
            if poll.is_pending() {
                register(&mut state.entries[self.key].writer, cx.waker(), &mut old);
            }
            // If nothing was queued, the driver is not woken.
            let work = data.len() < before || poll.is_ready();
            (poll, work)
        })
    }

    /// Queues HEADERS; ready when the stream is open and they were queued.
    pub(crate) fn poll_send_headers(
        &self,
        cx: &mut Context<'_>,
        headers: &HeaderBlock,
    ) -> Poll<Result<(), Error>> {
        self.shared.watch_run();
        let mut old = None;
        self.shared.command_if(|state| {
            let entry = &mut state.entries[self.key];
            if let Some(failure) = &entry.failure {
                return (Poll::Ready(Err(failure.clone())), false);
            }
            if entry.id.is_zero() {
                register(&mut entry.writer, cx.waker(), &mut old);
                return (Poll::Pending, false);
            }
            if state.machine.headers(entry.id, headers, false) {
                return (Poll::Ready(Ok(())), true);
            }
            let id = entry.id;
            (Poll::Ready(Err(Error::SendClosed { id })), false)
        })
    }

    /// Number of bytes that can be queued now.
    pub(crate) fn poll_capacity(&self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        self.shared.watch_run();
        let mut old = None;
        self.shared.look(|state| {
            let entry = &mut state.entries[self.key];
            if let Some(failure) = &entry.failure {
                return Poll::Ready(Err(failure.clone()));
            }
            if entry.fin_sent {
                return Poll::Ready(Err(Error::SendClosed { id: entry.id }));
            }
            match if entry.id.is_zero() {
                0
            } else {
                state.machine.send_capacity(entry.id)
            } {
                0 => {
                    register(&mut entry.writer, cx.waker(), &mut old);
                    Poll::Pending
                }
                room => Poll::Ready(Ok(room)),
            }
        })
    }

    /// Sends RST_STREAM behind the stream's output, unless both halves have ended.
    pub(crate) fn reset_behind_output(&self, status: RstStatus) {
        self.command(|state, key| {
            if !state.entries[key].is_done() {
                state.reset_behind_output(key, status);
            }
        });
    }

    /// Ready when the stream ended early.
    pub(crate) fn poll_failure(&self, cx: &mut Context<'_>) -> Poll<Error> {
        self.shared.watch_run();
        let mut old = None;
        self.look(|entry| match &entry.failure {
            Some(failure) => Poll::Ready(failure.clone()),
            None => {
                register(&mut entry.writer, cx.waker(), &mut old);
                Poll::Pending
            }
        })
    }

    /// Ready when the stream has ended; the reason, if it ended early.
    pub(crate) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<Option<Error>> {
        if self.look(|entry| entry.is_done() && entry.failure.is_none()) {
            return Poll::Ready(None);
        }
        self.poll_failure(cx).map(Some)
    }
}

fn poll_entry(
    entry: &mut Entry,
    cx: &mut Context<'_>,
    old: &mut Option<Waker>,
) -> Poll<Option<Result<Inbound, Error>>> {
    if let Some(mismatch) = entry.mismatch.filter(|_| entry.discard) {
        let (declared, received) = (mismatch.declared, mismatch.received);
        return Poll::Ready(Some(Err(Error::Length { declared, received })));
    }
    if let Some(item) = entry.inbound.pop_front() {
        return Poll::Ready(Some(Ok(item)));
    }
    if entry.fin_received {
        return Poll::Ready(None);
    }
    if let Some(failure) = &entry.failure {
        return Poll::Ready(Some(Err(failure.clone())));
    }
    register(&mut entry.reader, cx.waker(), old);
    Poll::Pending
}

impl State {
    /// Queues as much of `data` as there is room for; pending while some is left.
    pub(crate) fn send(
        &mut self,
        key: usize,
        data: &mut Bytes,
        fin: bool,
    ) -> Poll<Result<(), Error>> {
        let entry = &self.entries[key];
        let id = entry.id;
        if let Some(failure) = &entry.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        if entry.fin_sent {
            return Poll::Ready(Err(Error::SendClosed { id }));
        }
        if id.is_zero() {
            return Poll::Pending;
        }
        if !data.is_empty() {
            let piece = data.split_to(self.machine.send_capacity(id).min(data.len()));
            let last = fin && data.is_empty();
            let bytes = piece.len() as u64;
            if bytes > 0 && !self.machine.send_data(id, piece, last) {
                return Poll::Ready(Err(Error::SendClosed { id }));
            }
            self.entries[key].sent_bytes += bytes;
            if !data.is_empty() {
                return Poll::Pending;
            }
        } else if fin && !self.machine.send_data(id, Bytes::new(), true) {
            return Poll::Ready(Err(Error::SendClosed { id }));
        }
        if fin {
            self.sent_fin(key);
        }
        Poll::Ready(Ok(()))
    }

    /// To be called when our half has ended.
    pub(crate) fn sent_fin(&mut self, key: usize) {
        let entry = &mut self.entries[key];
        entry.fin_sent = true;
        if entry.is_done() {
            self.detach(key);
        }
    }

    /// Returns credit for `bytes` to the peer.
    pub(crate) fn consume(&mut self, key: usize, bytes: usize) {
        let entry = &mut self.entries[key];
        // A reset has already returned all of it.
        let bytes = bytes.min(entry.unread_bytes);
        if bytes > 0 {
            entry.unread_bytes -= bytes;
            self.machine.consume(entry.id, bytes);
        }
    }
}
