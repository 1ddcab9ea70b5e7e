//! Applies the events of the session machine to the entries of streams, and collects the wakers of their owners. The driver calls this
//! while it holds the lock.

use std::sync::Arc;
use std::task::Waker;

use bytes::Bytes;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::priority::Priority;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_http::content_length::LengthCheck;
use spdy_http::push::{Promise, decode_promise, is_same_origin};
use spdy_session::config::{PushPolicy, Role};
use spdy_session::error::{OpenError, SessionError};
use spdy_session::event::{Event, ResetCause};
use spdy_session::limit::Limit;

use crate::error::Error;
use crate::session::entry::{Entry, Inbound, OnMismatch, Opening};
use crate::session::push_parent::PushParent;
use crate::session::state::State;

/// Logs which limit ended a session. Deadlines are logged at debug level, because vanished peers exceed them often. Any other limit matters
/// to the operator of the server.
fn log_limit(error: &SessionError) {
    match error.limit() {
        Some(limit) if limit.is_deadline() => tracing::debug!(%limit, %error, "session ended"),
        Some(limit) => tracing::warn!(%limit, %error, "the peer exceeded a limit; session ended"),
        None => {}
    }
}

impl State {
    /// Handles all events that the machine has queued, and returns whether there were any. Wakers are added to `woken`, to be called after
    /// the lock is released.
    pub(crate) fn dispatch(
        &mut self,
        role: Role,
        version: Version,
        woken: &mut Vec<Waker>,
    ) -> bool {
        let mut any = false;
        while let Some(event) = self.machine.poll_event() {
            any = true;
            match event {
                Event::Opened {
                    id,
                    associated_to,
                    priority,
                    unidirectional,
                    headers,
                    fin,
                } => {
                    let opening = Opening {
                        headers,
                        associated_to,
                        priority,
                        unidirectional,
                        promise: None,
                        parent: None,
                    };
                    self.handle_opened(role, version, id, opening, fin, woken);
                }
                Event::Reply { id, headers, fin } => self.handle_reply(id, headers, fin, woken),
                Event::Headers { id, headers, fin } => self.handle_headers(id, headers, fin, woken),
                Event::Data { id, data, fin } => self.handle_data(role, id, data, fin, woken),
                Event::Reset { id, cause } => self.handle_reset(id, cause, woken),
                Event::Writable { id } => {
                    if let Some(key) = self.by_id.get(&id) {
                        woken.extend(self.entries[*key].writer.take());
                    }
                }
                Event::CanOpen => self.open_waiting(woken),
                Event::Pong { rtt } => {
                    if let Some(meter) = &self.meter {
                        meter.record_round_trip(rtt);
                    }
                    // One round trip answers all pending pings.
                    for ping in self.pings.drain(..) {
                        let _ = ping.send(rtt); // the task that sent the ping may be gone
                    }
                }
                Event::GoAway { .. } => {
                    self.closing = true;
                    self.fail_waiting(woken);
                }
                Event::Closed { error: None } => self.end(Ok(()), woken),
                Event::Closed { error: Some(cause) } => {
                    log_limit(&cause);
                    // If I/O failed, the machine only knows that the session was lost.
                    let lost = self.io_error.take().unwrap_or(Error::SessionLost(cause));
                    self.end(Err(lost), woken);
                }
            }
        }
        any
    }

    fn handle_opened(
        &mut self,
        role: Role,
        version: Version,
        id: StreamId,
        mut opening: Opening,
        fin: bool,
        woken: &mut Vec<Waker>,
    ) {
        if !self.peer_uses_priorities && opening.priority != Priority::HIGHEST {
            self.peer_uses_priorities = true;
            self.machine.restore_priorities(); // the priorities of the SYN_STREAM frames of earlier streams
        }
        if !self.accepts_streams {
            self.machine.reset(id, RstStatus::REFUSED_STREAM);
            return;
        }
        // Ended streams do not count as concurrent, but use memory until they are accepted. Cancelled ones count as work until
        // their handlers have stopped.
        let config = self.machine.config();
        // A client with this policy accepts streams that are not pushes.
        let accepts_any = config.push == PushPolicy::AcceptUnassociated;
        let exceeded = if self.incoming.len() >= config.max_concurrent_streams as usize {
            Some(Limit::UntakenStreams)
        } else if (role == Role::Server || accepts_any)
            && self.exceeds_ended_work(role, config.ended_streams_in_work as usize)
        {
            Some(Limit::EndedStreamsInWork)
        } else {
            None
        };
        if let Some(limit) = exceeded {
            self.machine.count(limit);
            self.machine.reset(id, RstStatus::REFUSED_STREAM);
            return;
        }
        if role == Role::Client && !accepts_any {
            match self.check_push(version, &opening) {
                Ok((promise, parent)) => {
                    opening.promise = Some(promise);
                    opening.parent = Some(parent);
                }
                Err(status) => {
                    self.refused_push();
                    self.machine.reset(id, status);
                    return;
                }
            }
        }
        let mut entry = Entry::new(id, 0);
        // The recipient of a unidirectional stream cannot send on it.
        entry.fin_sent = opening.unidirectional;
        entry.opening = Some(Box::new(opening));
        let key = self.insert(entry);
        self.by_id.insert(id, key);
        if self.claims.is_some() {
            self.wait_for_claim(key);
        } else {
            self.incoming.push_back(key);
            woken.extend(self.incoming_waker.take());
        }
        self.finish_on_fin(key, fin, woken);
    }

    /// Checks a pushed stream, in the order in which browsers did. Returns its promise and the request that it is associated with, or the
    /// status to reset it with.
    fn check_push(
        &mut self,
        version: Version,
        opening: &Opening,
    ) -> Result<(Promise, Arc<PushParent>), RstStatus> {
        let parent_key = self
            .by_id
            .get(&opening.associated_to)
            .ok_or(RstStatus::INVALID_STREAM)?;
        let promise =
            decode_promise(version, &opening.headers).map_err(|_| RstStatus::PROTOCOL_ERROR)?;
        match self.entries[*parent_key].push_parent.clone() {
            Some(parent)
                if is_same_origin(&parent.uri, &promise.request.uri)
                    && self.may_wait(&promise.request.uri) =>
            {
                Ok((promise, parent))
            }
            _ => Err(RstStatus::REFUSED_STREAM),
        }
    }

    fn handle_reply(
        &mut self,
        id: StreamId,
        headers: HeaderBlock,
        fin: bool,
        woken: &mut Vec<Waker>,
    ) {
        if let Some(key) = self.by_id.get(&id).copied() {
            let entry = &mut self.entries[key];
            entry.reply = Some(headers);
            woken.extend(entry.reader.take());
            self.finish_on_fin(key, fin, woken);
        }
    }

    fn handle_headers(
        &mut self,
        id: StreamId,
        headers: HeaderBlock,
        fin: bool,
        woken: &mut Vec<Waker>,
    ) {
        let Some(key) = self.by_id.get(&id).copied() else {
            return;
        };
        let entry = &mut self.entries[key];
        if !entry.discard {
            entry.inbound.push_back(Inbound::Headers(headers));
            woken.extend(entry.reader.take());
        }
        self.finish_on_fin(key, fin, woken);
    }

    fn handle_data(
        &mut self,
        role: Role,
        id: StreamId,
        data: Bytes,
        fin: bool,
        woken: &mut Vec<Waker>,
    ) {
        let Some(key) = self.by_id.get(&id).copied() else {
            // The stream has no reader. A server that has responded still reads the request to its end, up to a limit, because
            // peers expect it. A client cancels the response, which could be long.
            self.machine.discard(id, data.len());
            if role == Role::Client {
                self.machine.finish_and_reset(id, RstStatus::CANCEL);
            }
            return;
        };
        let entry = &mut self.entries[key];
        let bytes = data.len();
        entry.received_bytes += bytes as u64;
        if entry.no_body && bytes > 0 {
            self.machine.consume(id, bytes);
            return self.refuse_data(key, woken);
        }
        if entry.mismatch.is_none()
            && let Err(mismatch) = entry.length.count(bytes, fin)
        {
            entry.mismatch = Some(mismatch);
            if entry.on_mismatch == OnMismatch::Refuse && self.refuse_if_mismatched(key, woken) {
                self.machine.consume(id, bytes);
                return;
            }
        }
        let entry = &mut self.entries[key];
        if entry.discard {
            self.machine.discard(id, bytes);
        } else if bytes > 0 {
            entry.push_data(data);
            if self.claims.is_some() {
                self.count_unclaimed(key, bytes);
                if !self.entries.contains(key) {
                    return;
                }
            }
        }
        woken.extend(self.entries[key].reader.take());
        self.finish_on_fin(key, fin, woken);
    }

    /// Refuses a request if its length differs from its content-length. Before the response has begun, its body is discarded and
    /// its reader gets the error, so that a 400 can be sent. After that the stream is reset, and the result is `true`.
    fn refuse_if_mismatched(&mut self, key: usize, woken: &mut Vec<Waker>) -> bool {
        let entry = &mut self.entries[key];
        let Some(mismatch) = entry.mismatch else {
            return false;
        };
        let failure = Error::Length {
            declared: mismatch.declared,
            received: mismatch.received,
        };
        woken.extend(entry.reader.take());
        if entry.answered {
            woken.extend(entry.writer.take());
            self.reset(key, RstStatus::PROTOCOL_ERROR, failure);
            return true;
        }
        entry.discard = true;
        self.drop_unread(key);
        false
    }

    /// Checks the received and all future DATA of a request with `check`.
    pub(crate) fn expect_length(&mut self, key: usize, mut check: LengthCheck) {
        let entry = &mut self.entries[key];
        entry.on_mismatch = OnMismatch::Refuse;
        let received = usize::try_from(entry.received_bytes).unwrap_or(usize::MAX);
        entry.mismatch = check.count(received, entry.fin_received).err();
        entry.length = check;
        // No waker can be lost: the caller has not returned the request yet, so no task waits for its stream.
        self.refuse_if_mismatched(key, &mut Vec::new());
    }

    /// Ends the peer's half of the stream if `fin`. If both halves have ended, the stream is removed from `by_id`, because the
    /// machine has removed it too.
    fn finish_on_fin(&mut self, key: usize, fin: bool, woken: &mut Vec<Waker>) {
        let entry = &mut self.entries[key];
        if fin {
            entry.fin_received = true;
            woken.extend(entry.reader.take());
        }
        if entry.is_done() {
            woken.extend(entry.writer.take()); // the writer may wait for a reset
            self.detach(key);
        }
    }

    /// Fails a stream whose response must have no body, but got DATA. It makes no difference if the stream has ended, or if the
    /// DATA arrived with the head. The reader gets the error in place of the DATA: after earlier HEADERS, and before later input.
    pub(crate) fn refuse_data(&mut self, key: usize, woken: &mut Vec<Waker>) {
        let entry = &mut self.entries[key];
        let inbound = std::mem::take(&mut entry.inbound);
        let is_headers = |item: &Inbound| matches!(item, Inbound::Headers(_));
        entry.failure = None;
        self.fail(key, RstStatus::PROTOCOL_ERROR, woken);
        let entry = &mut self.entries[key];
        entry.inbound = inbound.into_iter().take_while(is_headers).collect();
        entry.fin_received = false;
    }

    /// Resets a stream because of a protocol error of the peer.
    fn fail(&mut self, key: usize, status: RstStatus, woken: &mut Vec<Waker>) {
        let entry = &mut self.entries[key];
        woken.extend(entry.reader.take());
        woken.extend(entry.writer.take());
        let id = entry.id;
        self.reset(key, status, Error::ResetByUs { id, status });
    }

    fn handle_reset(&mut self, id: StreamId, cause: ResetCause, woken: &mut Vec<Waker>) {
        let Some(key) = self.by_id.remove(&id) else {
            return;
        };
        let failure = match cause {
            ResetCause::ByPeer(status) => Error::ResetByPeer { id, status },
            ResetCause::ByUs(status) => Error::ResetByUs { id, status },
            ResetCause::Stalled { waited } => Error::Stalled { id, waited },
            ResetCause::NotProcessed => Error::NotProcessed { id },
            ResetCause::SessionLost(error) => {
                self.io_error.clone().unwrap_or(Error::SessionLost(error))
            }
        };
        let entry = &mut self.entries[key];
        entry.failure.get_or_insert(failure);
        woken.extend(entry.reader.take());
        woken.extend(entry.writer.take());
        self.remove_unaccepted(key);
    }

    /// Removes the entry of an ended stream that was not accepted, so that a peer that opens and resets thousands of
    /// streams leaves no memory in use.
    ///
    /// Only a stream of the peer can have an entry without handles: the entry of any other stream is removed with its last handle.
    fn remove_unaccepted(&mut self, key: usize) {
        if self.entries[key].handles == 0 {
            self.remove_unclaimed(key);
            self.drop_unread(key);
            self.incoming.retain(|unaccepted| *unaccepted != key);
            self.entries.remove(key);
            self.release_burst_memory();
        }
    }

    /// Opens our queued streams, the most urgent first, up to the peer's limit.
    fn open_waiting(&mut self, woken: &mut Vec<Waker>) {
        while let Some(first) = self.waiting.first_entry() {
            let queued = first.get();
            match self.machine.open(&queued.headers, queued.open) {
                Ok(id) => {
                    let key = first.remove().key;
                    let entry = &mut self.entries[key];
                    entry.id = id;
                    self.by_id.insert(id, key);
                    woken.extend(entry.reader.take());
                    woken.extend(entry.writer.take());
                }
                Err(OpenError::Full { .. }) => return,
                Err(_) => {
                    self.closing = true;
                    return self.fail_waiting(woken);
                }
            }
        }
    }

    /// Fails our queued streams. No frame of them was written, so they may be retried on another session.
    fn fail_waiting(&mut self, woken: &mut Vec<Waker>) {
        let refusal = self.refusal();
        for (_, queued) in std::mem::take(&mut self.waiting) {
            let entry = &mut self.entries[queued.key];
            entry.failure = Some(refusal.clone());
            woken.extend(entry.reader.take());
            woken.extend(entry.writer.take());
        }
    }

    /// Ends the session with `result`: fails all open streams, and wakes every waiting task, in the order of the entries.
    pub(crate) fn end(&mut self, result: Result<(), Error>, woken: &mut Vec<Waker>) {
        self.closing = true;
        let lost = result.clone().err().unwrap_or(Error::Closing);
        self.ended.get_or_insert(result);
        self.fail_waiting(woken);
        let keys: Vec<usize> = self.entries.iter().map(|(key, _)| key).collect();
        for key in keys {
            let entry = &mut self.entries[key];
            if !entry.is_done() {
                entry.failure.get_or_insert_with(|| lost.clone());
            }
            woken.extend(entry.reader.take());
            woken.extend(entry.writer.take());
            self.remove_unaccepted(key);
        }
        self.by_id.clear();
        self.pings.clear();
        woken.extend(self.incoming_waker.take());
        woken.extend(self.ended_wakers.drain());
    }
}
