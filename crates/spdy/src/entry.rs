//! One stream, as its owners and the driver share it.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::stream_id::StreamId;
use spdy_http::length::{LengthCheck, LengthMismatch};

use crate::error::Error;

/// What came for a stream, in the order of the wire.
#[derive(Debug)]
pub(crate) enum Inbound {
    /// DATA; its credit is still with us.
    Data(Bytes),
    /// HEADERS. No window bounds them: the machine takes so many on a stream, `headers_per_stream`.
    Headers(HeaderBlock),
}

/// SYN_STREAM of the peer, until someone takes it.
#[derive(Debug)]
pub(crate) struct Opening {
    pub(crate) headers: HeaderBlock,
    pub(crate) associated_to: StreamId,
    pub(crate) priority: Priority,
    pub(crate) unidirectional: bool,
    /// A client's: what is pushed.
    pub(crate) promise: Option<spdy_http::push::Promise>,
}

/// What to do about DATA that is not as long as content-length says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OnMismatch {
    /// Deliver, and say so (a client).
    Flag,
    /// The request is bad: 400, or PROTOCOL_ERROR if the answer has begun (a server).
    Refuse,
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Entry {
    /// 0 while it waits to be opened.
    pub(crate) id: StreamId,
    /// Owners; the entry goes with the last.
    pub(crate) handles: usize,
    /// The peer's SYN_STREAM, not yet taken.
    pub(crate) opening: Option<Box<Opening>>,
    /// The peer's SYN_REPLY, not yet taken.
    pub(crate) reply: Option<HeaderBlock>,
    /// We have sent SYN_REPLY, or the head of a push.
    pub(crate) answered: bool,
    pub(crate) inbound: VecDeque<Inbound>,
    /// DATA in `inbound`, bytes.
    pub(crate) unread_bytes: usize,
    pub(crate) fin_received: bool,
    pub(crate) fin_sent: bool,
    /// Nobody reads: DATA is given back as it comes.
    pub(crate) discard: bool,
    /// The response has no body: DATA is the peer's fault.
    pub(crate) no_body: bool,
    /// Why it ended early. What came before may still be read.
    pub(crate) failure: Option<Error>,
    pub(crate) received_bytes: u64,
    pub(crate) length: LengthCheck,
    pub(crate) on_mismatch: OnMismatch,
    pub(crate) mismatch: Option<LengthMismatch>,
    /// What a request of ours asks for, where pushes beside it must be judged.
    pub(crate) uri: Option<http::Uri>,
    pub(crate) reader: Option<Waker>,
    pub(crate) writer: Option<Waker>,
}

impl Entry {
    /// A stream with `handles` owners.
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
            length: LengthCheck::default(),
            on_mismatch: OnMismatch::Flag,
            mismatch: None,
            uri: None,
            reader: None,
            writer: None,
        }
    }

    /// Both halves have ended in order.
    pub(crate) fn is_done(&self) -> bool {
        self.fin_received && self.fin_sent
    }

    /// Nothing more comes, and all that came was taken.
    pub(crate) fn is_read_out(&self) -> bool {
        self.fin_received && self.inbound.is_empty()
    }
}

/// Remembers `waker`, without cloning it anew for a task that asks again.
///
/// What it replaces goes to `old`, to be dropped once the lock is free: where a waker is all that holds
/// a task, dropping it drops the task, and with it a share in a stream, which wants the lock.
pub(crate) fn register(slot: &mut Option<Waker>, waker: &Waker, old: &mut Option<Waker>) {
    if !slot.as_ref().is_some_and(|known| known.will_wake(waker)) {
        *old = slot.replace(waker.clone());
    }
}
