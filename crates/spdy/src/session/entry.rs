//! One stream, as shared by its handles and the driver.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::Waker;

use bytes::{Bytes, BytesMut};
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_http::content_length::{LengthCheck, LengthMismatch};

use crate::error::Error;
use crate::session::push_parent::PushParent;
use crate::trace::StreamSpan;

/// A received item of a stream, in the order of the wire.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// DATA whose credit was not returned to the peer yet.
    Data(Bytes),
    /// HEADERS. Not limited by windows: the machine accepts `headers_per_stream` of them.
    Headers(HeaderBlock),
}

/// SYN_STREAM of the peer.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) headers: HeaderBlock,
    pub(crate) associated_to: StreamId,
    pub(crate) priority: Priority,
    pub(crate) unidirectional: bool,
    /// In a client: the URL that is pushed.
    pub(crate) promise: Option<spdy_http::push::Promise>,
    /// In a client: the associated request.
    pub(crate) parent: Option<Arc<PushParent>>,
}

/// What to do if the length of DATA differs from content-length.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OnMismatch {
    /// Deliver the body, and report the mismatch (a client).
    Flag,
    /// Reject the request: 400, or PROTOCOL_ERROR if the response has begun (a server).
    Refuse,
}

/// DATA shorter than this, bytes, is copied. Otherwise it would keep a whole read buffer in memory, so that a window of single
/// bytes could hold gigabytes.
const COPY_BELOW_BYTES: usize = 4096;

/// Maximum size of a piece of joined copies, bytes.
const JOIN_UP_TO_BYTES: usize = 16 * 1024;

/// One stream.
#[derive(Debug)]
pub(crate) struct Entry {
    /// 0 while it is queued to be opened.
    pub(crate) id: StreamId,
    /// Number of handles; the entry is removed with the last.
    pub(crate) handles: usize,
    /// The peer's SYN_STREAM, if not accepted yet.
    pub(crate) opening: Option<Box<Opening>>,
    /// The peer's SYN_REPLY, if not taken yet.
    pub(crate) reply: Option<HeaderBlock>,
    /// True if we have sent SYN_REPLY, or the head of a push.
    pub(crate) answered: bool,
    pub(crate) inbound: VecDeque<Inbound>,
    /// Bytes of DATA in `inbound`.
    pub(crate) unread_bytes: usize,
    pub(crate) fin_received: bool,
    pub(crate) fin_sent: bool,
    /// There is no reader: the credit for DATA is returned on arrival.
    pub(crate) discard: bool,
    /// The response has no body: DATA is a protocol error of the peer.
    pub(crate) no_body: bool,
    /// Why it ended early. Earlier input may still be read.
    pub(crate) failure: Option<Error>,
    pub(crate) received_bytes: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) length: LengthCheck,
    pub(crate) on_mismatch: OnMismatch,
    pub(crate) mismatch: Option<LengthMismatch>,
    /// Present if a subscriber of `tracing` records the stream.
    pub(crate) span: Option<Box<StreamSpan>>,
    /// The URL and headers of our request, if pushes on it must be checked.
    pub(crate) push_parent: Option<Arc<PushParent>>,
    /// The peer's request, by which our pushes on it are checked.
    pub(crate) request: Option<Box<Opening>>,
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
}

impl Entry {
    /// A stream with `handles` handles.
    pub(crate) fn new(id: StreamId, handles: usize) -> Self {
        Self {
            id,
            handles,
            opening: None,
            reply: None,
            answered: false,
            inbound: VecDeque::new(),
            unread_bytes: 0,
            fin_received: false,
            fin_sent: false,
            discard: false,
            no_body: false,
            failure: None,
            received_bytes: 0,
            sent_bytes: 0,
            length: LengthCheck::default(),
            on_mismatch: OnMismatch::Flag,
            mismatch: None,
            span: None,
            push_parent: None,
            request: None,
            reader: None,
            writer: None,
        }
    }

    /// Stores DATA for the reader.
    pub(crate) fn push_data(&mut self, data: Bytes) {
        self.unread_bytes += data.len();
        if data.len() >= COPY_BELOW_BYTES {
            return self.inbound.push_back(Inbound::Data(data));
        }
        if let Some(Inbound::Data(last)) = self.inbound.back_mut()
            && last.len() + data.len() <= JOIN_UP_TO_BYTES
        {
            // A copied piece has no other reference and grows in place; a piece that shares a buffer is copied once.
            let mut joined = match std::mem::take(last).try_into_mut() {
                Ok(alone) => alone,
                Err(shared) => BytesMut::from(&shared[..]),
            };
            joined.extend_from_slice(&data);
            *last = joined.freeze();
        } else {
            self.inbound
                .push_back(Inbound::Data(Bytes::copy_from_slice(&data)));
        }
    }

    /// True if both halves have ended in order.
    pub(crate) fn is_done(&self) -> bool {
        self.fin_received && self.fin_sent
    }

    /// True if no more input can arrive, and all input was taken.
    pub(crate) fn is_drained(&self) -> bool {
        self.fin_received && self.inbound.is_empty()
    }
}

/// Stores `waker`, without cloning it again for the task that is already registered.
///
/// The waker that it replaces is moved to `old`, to be dropped after the lock is released: if it is the last
/// reference to a task, dropping it drops the task, and with it a stream handle, which takes the lock.
pub(crate) fn register(slot: &mut Option<Waker>, waker: &Waker, old: &mut Option<Waker>) {
    if !slot
        .as_ref()
        .is_some_and(|current| current.will_wake(waker))
    {
        *old = slot.replace(waker.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn push_all(pieces: impl IntoIterator<Item = Bytes>) -> Vec<Bytes> {
        let mut entry = Entry::new(StreamId::new(1), 1);
        pieces.into_iter().for_each(|piece| entry.push_data(piece));
        let data = |item| match item {
            Inbound::Data(data) => data,
            Inbound::Headers(_) => unreachable!("unexpected headers"),
        };
        entry.inbound.drain(..).map(data).collect()
    }

    /// Regression: a read buffer of 32 KiB stayed in memory for each byte that arrived alone.
    #[test]
    fn small_data_is_copied_and_joined() {
        let buffers: Vec<Bytes> = (0..40_000_u32)
            .map(|number| Bytes::from(vec![number as u8; 64]))
            .collect();
        let stored = push_all(buffers.iter().map(|buffer| buffer.slice(..1)));
        let lengths: Vec<usize> = stored.iter().map(Bytes::len).collect();
        assert_eq!(
            lengths,
            [
                JOIN_UP_TO_BYTES,
                JOIN_UP_TO_BYTES,
                40_000 - 2 * JOIN_UP_TO_BYTES
            ]
        );
        assert!(
            stored
                .concat()
                .iter()
                .enumerate()
                .all(|(number, byte)| *byte == number as u8)
        );
        assert!(buffers.iter().all(Bytes::is_unique));
    }

    #[test]
    fn long_pieces_are_shared_and_not_copied() {
        let buffer = Bytes::from(vec![b'x'; 3 * COPY_BELOW_BYTES]);
        let stored = push_all([
            buffer.slice(..COPY_BELOW_BYTES),
            buffer.slice(COPY_BELOW_BYTES..),
        ]);
        let begins: Vec<_> = stored.iter().map(|piece| piece.as_ptr()).collect();
        assert_eq!(
            begins,
            [buffer.as_ptr(), buffer[COPY_BELOW_BYTES..].as_ptr()]
        );
    }
}
