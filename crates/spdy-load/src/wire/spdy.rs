//! SPDY: the session machine itself, without the library's handles and tasks.
//!
//! The header block of a request is created once. It is compressed each time, because every block depends on the blocks before it.
//! The machine's own timers are disabled: only the load's timeouts apply.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use spdy_clock::MonotonicClock;
use spdy_frame::header_block::HeaderBlock;
use spdy_frame::status::RstStatus;
use spdy_frame::stream_id::StreamId;
use spdy_frame::version::Version;
use spdy_http::header_names::Names;
use spdy_net::network::BoxIo;
use spdy_session::config::{Config, Role};
use spdy_session::event::{Event as Happened, ResetCause};
use spdy_session::session::{Session, StreamOptions};
use tokio::io::{AsyncReadExt, AsyncWrite};

use crate::fault::{Fault, FaultKind};
use crate::plan::Plan;
use crate::traffic::{self, CountingIo, Traffic, TrafficCounter};
use crate::wire::event::Event;
use crate::wire::ring::Ring;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Bytes of frames that are collected before a write.
const WRITE_AHEAD: usize = 64 * 1024;

/// One session.
pub(crate) struct SpdyWire {
    io: CountingIo,
    machine: Session,
    clock: MonotonicClock,
    input: BytesMut,
    out: BytesMut,
    unflushed: bool,
    ended: bool,
    requests: Vec<HeaderBlock>,
    body: Bytes,
    /// SYN_STREAM has FIN.
    fin: bool,
    heads_only: bool,
    names: &'static Names,
    streams: Ring<Answer>,
    traffic: Rc<Traffic>,
    /// Header bytes that `traffic` has counted, sent and received.
    counted_header_bytes: (u64, u64),
}

/// The response to one request, as far as it arrived.
struct Answer {
    slot: usize,
    status: u16,
    body_bytes: u64,
    length: Option<u64>,
}

impl SpdyWire {
    pub(crate) fn new(
        io: BoxIo,
        version: Version,
        plan: &Plan,
        traffic: Rc<Traffic>,
    ) -> Result<Self, Fault> {
        let mut config = Config::new(Role::Client, version);
        config.compression = plan.compression;
        config.compression_window_bits = plan.compression_window_bits;
        config.initial_window_bytes = plan.stream_window_bytes;
        // One frame for all requests, if there is no upload that a server could stall.
        if plan.target.body().is_empty() {
            config.settings_window_bytes = None;
        }
        config.session_window_bytes = Some(plan.session_window_bytes);
        config.frame_timeout = None;
        config.small_data_bytes = 0;
        let clock = MonotonicClock::start();
        let requests = plan
            .target
            .blocks(version)
            .map_err(|error| Fault::new(FaultKind::Malformed, error))?;
        let body = plan.target.body().clone();
        Ok(Self {
            io: CountingIo::new(io, TrafficCounter::new(traffic.clone())),
            machine: Session::new(config, clock.now()),
            clock,
            input: BytesMut::new(),
            out: BytesMut::new(),
            unflushed: false,
            ended: false,
            requests,
            fin: body.is_empty(),
            body,
            heads_only: plan.target.is_head_request(),
            names: Names::of(version),
            streams: Ring::default(),
            traffic,
            counted_header_bytes: (0, 0),
        })
    }

    pub(crate) fn send(&mut self, slot: usize, number: usize) -> bool {
        let open = StreamOptions {
            fin: self.fin,
            ..StreamOptions::default()
        };
        let Ok(id) = self.machine.open(&self.requests[number], open) else {
            return false;
        };
        if !self.fin {
            self.machine.send_data(id, self.body.clone(), true);
        }
        let answer = Answer {
            slot,
            status: 0,
            body_bytes: 0,
            length: None,
        };
        self.streams.insert(id.value(), answer);
        true
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.ended || self.machine.is_closing()
    }

    pub(crate) fn cancel(&mut self, slot: usize) {
        let found = self.streams.iter().find(|(_, answer)| answer.slot == slot);
        if let Some((id, _)) = found {
            self.streams.remove(id);
            self.machine.reset(StreamId::new(id), RstStatus::CANCEL);
        }
    }

    pub(crate) fn receive(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        if self.ended {
            return false;
        }
        if self.input.capacity() - self.input.len() < READ_BYTES / 4 {
            self.input.reserve(READ_BYTES);
        }
        let now = self.clock.now();
        // The future has no state between polls, so each poll may create a new one.
        match pin!(self.io.read_buf(&mut self.input)).poll(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0)) => self.machine.handle_eof(now),
            Poll::Ready(Ok(_)) => self.machine.handle_input_buffer(now, &mut self.input),
            Poll::Ready(Err(error)) => self.lose(&error, events),
        }
        self.drain(events);
        true
    }

    pub(crate) fn flush(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) {
        let now = self.clock.now();
        while !self.ended {
            while self.out.len() < WRITE_AHEAD && self.machine.poll_transmit(now, &mut self.out) {}
            self.drain(events);
            if self.out.is_empty() {
                break;
            }
            match Pin::new(&mut self.io).poll_write(cx, &self.out) {
                Poll::Pending => break,
                Poll::Ready(Ok(len)) => {
                    self.out.advance(len);
                    self.unflushed = true;
                }
                Poll::Ready(Err(error)) => self.lose(&error, events),
            }
        }
        if self.unflushed {
            self.unflushed = Pin::new(&mut self.io).poll_flush(cx).is_pending();
        }
        self.count_headers();
    }

    fn count_headers(&mut self) {
        let stats = self.machine.stats();
        let now = (stats.sent_block_wire_bytes, stats.received_block_wire_bytes);
        self.traffic.add(traffic::Bytes {
            headers_sent: now.0 - self.counted_header_bytes.0,
            headers_received: now.1 - self.counted_header_bytes.1,
            ..traffic::Bytes::default()
        });
        self.counted_header_bytes = now;
    }

    /// Converts events of the session into events of the load.
    fn drain(&mut self, events: &mut Vec<Event>) {
        while let Some(happened) = self.machine.poll_event() {
            match happened {
                Happened::Reply { id, headers, fin } | Happened::Headers { id, headers, fin } => {
                    self.head(id, &headers);
                    self.finish_if(fin, id, events);
                }
                Happened::Data { id, data, fin } => {
                    self.machine.consume(id, data.len());
                    if let Some(answer) = self.streams.get_mut(id.value()) {
                        answer.body_bytes += data.len() as u64;
                    }
                    self.finish_if(fin, id, events);
                }
                Happened::Reset { id, cause } => self.reset(id, &cause, events),
                Happened::Closed { error } => {
                    let reason =
                        error.map_or("the session was closed".to_owned(), |e| e.to_string());
                    self.end(&reason, events);
                }
                Happened::Opened { id, .. } => {
                    self.machine.reset(id, RstStatus::REFUSED_STREAM);
                }
                Happened::Writable { .. }
                | Happened::CanOpen
                | Happened::Pong { .. }
                | Happened::GoAway { .. } => {}
            }
        }
    }

    /// Handles the head of a response; HEADERS after a final head are trailers.
    fn head(&mut self, id: StreamId, headers: &HeaderBlock) {
        let Some(answer) = self.streams.get_mut(id.value()) else {
            return;
        };
        if answer.status >= 200 {
            return;
        }
        if let Some(status) = headers.get(self.names.status) {
            answer.status = number(
                status
                    .split(|byte| *byte == b' ')
                    .next()
                    .unwrap_or_default(),
            )
            .and_then(|status| u16::try_from(status).ok())
            .unwrap_or(0);
        }
        answer.length = headers.get("content-length").and_then(number);
    }

    fn finish_if(&mut self, fin: bool, id: StreamId, events: &mut Vec<Event>) {
        if !fin {
            return;
        }
        let Some(answer) = self.streams.remove(id.value()) else {
            return;
        };
        let Answer {
            slot,
            status,
            body_bytes,
            length,
        } = answer;
        let has_body = !self.heads_only && !matches!(status, 204 | 304);
        let malformed = if status < 200 {
            Some("response without a status".to_owned())
        } else {
            length
                .filter(|length| has_body && *length != body_bytes)
                .map(|length| format!("body has {body_bytes} bytes, expected {length}"))
        };
        events.push(match malformed {
            None => Event::Answered {
                slot,
                status,
                body_bytes,
            },
            Some(reason) => Event::Lost {
                slot,
                fault: Fault::new(FaultKind::Malformed, reason),
                again: false,
            },
        });
    }

    fn reset(&mut self, id: StreamId, cause: &ResetCause, events: &mut Vec<Event>) {
        let Some(answer) = self.streams.remove(id.value()) else {
            return;
        };
        let (fault, again) = match cause {
            ResetCause::ByPeer(status) => (
                Fault::new(
                    FaultKind::Reset,
                    format_args!("the server reset the stream with {status}"),
                ),
                *status == RstStatus::REFUSED_STREAM,
            ),
            ResetCause::ByUs(status) => (
                Fault::new(
                    FaultKind::Malformed,
                    format_args!("the client reset the stream with {status}"),
                ),
                false,
            ),
            ResetCause::Stalled { waited } => (
                Fault::lost(format_args!("no window credit for {waited:?}")),
                false,
            ),
            ResetCause::NotProcessed => (
                Fault::lost("the server sent GOAWAY before it handled the request"),
                true,
            ),
            ResetCause::SessionLost(error) => (Fault::lost(error), false),
        };
        events.push(Event::Lost {
            slot: answer.slot,
            fault,
            again,
        });
    }

    fn lose(&mut self, error: &std::io::Error, events: &mut Vec<Event>) {
        self.end(&error.to_string(), events);
    }

    fn end(&mut self, reason: &str, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        self.ended = true;
        let lost = std::mem::take(&mut self.streams);
        events.extend(lost.iter().map(|(_, answer)| Event::Lost {
            slot: answer.slot,
            fault: Fault::lost(reason),
            again: false,
        }));
        events.push(Event::Ended);
    }
}

/// A decimal number of digits only.
fn number(digits: impl AsRef<[u8]>) -> Option<u64> {
    std::str::from_utf8(digits.as_ref())
        .ok()?
        .trim()
        .parse()
        .ok()
}
