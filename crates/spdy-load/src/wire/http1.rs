//! HTTP/1.1: requests are encoded once and copied, responses are parsed by httparse, in order (RFC 9112).
//!
//! ```text
//!  Head --content-length--> Length(n) --n = 0--> done
//!       --chunked---------> Size -> Chunk(n) -> Size ... -> Trailers -> done
//!       --neither---------> UntilClose --end of file--> done
//! ```
//!
//! More than one request in flight is pipelining.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes, BytesMut};
use spdy_net::network::BoxIo;
use tokio::io::{AsyncReadExt, AsyncWrite};

use crate::fault::{Fault, FaultKind};
use crate::plan::Plan;
use crate::traffic::{self, CountingIo, Traffic, TrafficCounter};
use crate::wire::event::Event;

/// Bytes of one read.
const READ_BYTES: usize = 64 * 1024;
/// Maximum headers of one response.
const MAX_HEADERS: usize = 128;
/// Maximum bytes of a head, or of a line of a chunked body.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// One connection.
pub(crate) struct Http1Wire {
    io: CountingIo,
    input: BytesMut,
    out: BytesMut,
    unflushed: bool,
    requests: Vec<Request>,
    heads_only: bool,
    /// Slots that wait for responses, in order.
    waiting: VecDeque<usize>,
    state: State,
    status: u16,
    body_bytes: u64,
    /// The server closes after this response.
    last: bool,
    ended: bool,
    traffic: Rc<Traffic>,
}

/// Head and body of a request.
struct Request {
    text: Bytes,
    head_bytes: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// The head is next.
    Head,
    /// This many bytes of the body are left.
    Length(u64),
    /// The body ends with the connection.
    UntilClose,
    /// The size of a chunk is next.
    Size,
    /// This many bytes of a chunk are left, including CR LF.
    Chunk(u64),
    /// Trailers, up to a blank line.
    Trailers,
}

/// Result of a parsing step.
enum Step {
    /// The buffered bytes may contain more.
    On,
    /// More bytes are needed.
    Wait,
    /// The response is complete.
    Done,
}

impl Http1Wire {
    pub(crate) fn new(io: BoxIo, plan: &Plan, traffic: Rc<Traffic>) -> Self {
        let body_bytes = plan.target.body().len();
        let request = |text: Bytes| Request {
            head_bytes: (text.len() - body_bytes) as u64,
            text,
        };
        Self {
            io: CountingIo::new(io, TrafficCounter::new(traffic.clone())),
            input: BytesMut::new(),
            out: BytesMut::new(),
            unflushed: false,
            requests: plan.target.texts().into_iter().map(request).collect(),
            heads_only: plan.target.is_head_request(),
            waiting: VecDeque::new(),
            state: State::Head,
            status: 0,
            body_bytes: 0,
            last: false,
            ended: false,
            traffic,
        }
    }

    pub(crate) fn send(&mut self, slot: usize, number: usize) -> bool {
        if self.is_closing() {
            return false;
        }
        let request = &self.requests[number];
        self.out.extend_from_slice(&request.text);
        self.traffic.add(traffic::Bytes {
            headers_sent: request.head_bytes,
            ..traffic::Bytes::default()
        });
        self.waiting.push_back(slot);
        true
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.ended || self.last
    }

    /// Responses are in order, so cancelling one ends the connection.
    pub(crate) fn cancel(&mut self, slot: usize, events: &mut Vec<Event>) {
        self.waiting.retain(|waiting| *waiting != slot);
        self.end("an earlier response timed out", events);
    }

    pub(crate) fn receive(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) -> bool {
        if self.ended {
            return false;
        }
        if self.input.capacity() - self.input.len() < READ_BYTES / 4 {
            self.input.reserve(READ_BYTES);
        }
        match pin!(self.io.read_buf(&mut self.input)).poll(cx) {
            Poll::Pending => return false,
            Poll::Ready(Ok(0)) => {
                if self.state == State::UntilClose {
                    self.answered(events);
                }
                self.end("the server closed the connection", events);
            }
            Poll::Ready(Ok(_)) => self.read(events),
            Poll::Ready(Err(error)) => self.end(&error.to_string(), events),
        }
        true
    }

    pub(crate) fn flush(&mut self, cx: &mut Context<'_>, events: &mut Vec<Event>) {
        while !self.ended && !self.out.is_empty() {
            match Pin::new(&mut self.io).poll_write(cx, &self.out) {
                Poll::Pending => break,
                Poll::Ready(Ok(len)) => {
                    self.out.advance(len);
                    self.unflushed = true;
                }
                Poll::Ready(Err(error)) => self.end(&error.to_string(), events),
            }
        }
        if self.unflushed {
            self.unflushed = Pin::new(&mut self.io).poll_flush(cx).is_pending();
        }
    }

    /// Reads all buffered responses.
    fn read(&mut self, events: &mut Vec<Event>) {
        while !self.ended && !self.input.is_empty() {
            let step = match self.waiting.is_empty() {
                true => Err("response without a request"),
                false => self.step(),
            };
            match step {
                Ok(Step::On) => {}
                Ok(Step::Wait) => return,
                Ok(Step::Done) => {
                    self.answered(events);
                    if self.last {
                        self.end("the server closed the connection after a response", events);
                    }
                }
                Err(reason) => {
                    if let Some(slot) = self.waiting.pop_front() {
                        let fault = Fault::new(FaultKind::Malformed, reason);
                        let again = false;
                        events.push(Event::Lost { slot, fault, again });
                    }
                    self.end(reason, events);
                }
            }
        }
    }

    /// One step of the state diagram above.
    fn step(&mut self) -> Result<Step, &'static str> {
        match self.state {
            State::Head => self.head(),
            State::Length(remaining) => {
                let remaining = remaining - self.skip(remaining, true);
                self.state = State::Length(remaining);
                Ok(if remaining == 0 {
                    Step::Done
                } else {
                    Step::Wait
                })
            }
            State::UntilClose => {
                self.skip(u64::MAX, true);
                Ok(Step::Wait)
            }
            State::Size => {
                let Some(line) = self.line()? else {
                    return Ok(Step::Wait);
                };
                let mut parts = line[..].split(|byte| *byte == b';');
                let size = parts.next().unwrap_or(&[]);
                let size = std::str::from_utf8(size.trim_ascii())
                    .ok()
                    .and_then(|size| u64::from_str_radix(size, 16).ok())
                    .filter(|size| *size < u64::MAX - 2)
                    .ok_or("chunk without a size")?;
                let all = self.body_bytes.checked_add(size);
                self.body_bytes = all.ok_or("body length exceeds 64 bits")?;
                self.state = match size {
                    0 => State::Trailers,
                    size => State::Chunk(size + 2),
                };
                Ok(Step::On)
            }
            State::Chunk(remaining) => {
                let remaining = remaining - self.skip(remaining, false);
                self.state = match remaining {
                    0 => State::Size,
                    remaining => State::Chunk(remaining),
                };
                Ok(if remaining == 0 { Step::On } else { Step::Wait })
            }
            State::Trailers => match self.line()? {
                None => Ok(Step::Wait),
                Some(line) if line.is_empty() => Ok(Step::Done),
                Some(_) => Ok(Step::On),
            },
        }
    }

    /// Drops up to `most` buffered bytes, and returns their number; those of the body are counted.
    fn skip(&mut self, most: u64, body: bool) -> u64 {
        let len = usize::try_from(most).map_or(self.input.len(), |most| most.min(self.input.len()));
        self.input.advance(len);
        if body {
            self.body_bytes += len as u64;
        }
        len as u64
    }

    /// The next line, without its end.
    fn line(&mut self) -> Result<Option<BytesMut>, &'static str> {
        let Some(end) = self.input.iter().position(|byte| *byte == b'\n') else {
            return match self.input.len() {
                0..=MAX_HEAD_BYTES => Ok(None),
                _ => Err("line without an end"),
            };
        };
        let mut line = self.input.split_to(end + 1);
        line.truncate(end);
        if line.ends_with(b"\r") {
            line.truncate(end - 1);
        }
        Ok(Some(line))
    }

    fn head(&mut self) -> Result<Step, &'static str> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let len = match response.parse(&self.input) {
            Ok(httparse::Status::Complete(len)) => len,
            Ok(httparse::Status::Partial) if self.input.len() > MAX_HEAD_BYTES => {
                return Err("response head without an end");
            }
            Ok(httparse::Status::Partial) => return Ok(Step::Wait),
            Err(_) => return Err("response is not HTTP/1.1"),
        };
        self.status = response.code.unwrap_or(0);
        let mut length = None;
        let mut chunked = false;
        let mut keep_alive = response.version == Some(1);
        for header in response.headers.iter() {
            let value = header.value.trim_ascii();
            if header.name.eq_ignore_ascii_case("content-length") {
                let digits = std::str::from_utf8(value).ok();
                let value = digits.and_then(|digits| digits.parse::<u64>().ok());
                length = Some(value.ok_or("Content-Length is not a number")?);
            } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
                chunked = value.to_ascii_lowercase().ends_with(b"chunked");
            } else if header.name.eq_ignore_ascii_case("connection") {
                let value = value.to_ascii_lowercase();
                keep_alive &= !value.windows(5).any(|word| word == b"close");
                keep_alive |= value.windows(10).any(|word| word == b"keep-alive");
            }
        }
        self.input.advance(len);
        self.traffic.add(traffic::Bytes {
            headers_received: len as u64,
            ..traffic::Bytes::default()
        });
        self.body_bytes = 0;
        if self.status == 101 {
            return Err("unrequested protocol switch (status 101)");
        }
        if self.status < 200 {
            return Ok(Step::On);
        }
        self.last = !keep_alive;
        if self.heads_only || matches!(self.status, 204 | 304) {
            return Ok(Step::Done);
        }
        self.state = match (chunked, length) {
            (true, _) => State::Size,
            (false, Some(0)) => return Ok(Step::Done),
            (false, Some(length)) => State::Length(length),
            (false, None) => State::UntilClose,
        };
        Ok(Step::On)
    }

    /// Handles the complete response of the first slot.
    fn answered(&mut self, events: &mut Vec<Event>) {
        self.state = State::Head;
        if let Some(slot) = self.waiting.pop_front() {
            let (status, body_bytes) = (self.status, self.body_bytes);
            events.push(Event::Answered {
                slot,
                status,
                body_bytes,
            });
        }
    }

    /// The connection has ended. Requests whose responses have not begun may be sent again.
    fn end(&mut self, reason: &str, events: &mut Vec<Event>) {
        if self.ended {
            return;
        }
        self.ended = true;
        let begun = self.state != State::Head || !self.input.is_empty();
        for (place, slot) in self.waiting.drain(..).enumerate() {
            events.push(Event::Lost {
                slot,
                fault: Fault::lost(reason),
                again: place > 0 || !begun,
            });
        }
        events.push(Event::Ended);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;

    use tokio::io::AsyncWriteExt;

    use super::*;

    /// The events of a client that has sent four requests, if `answers` arrives in pieces of `len` bytes and then the
    /// connection ends.
    fn events_of(answers: &[u8], len: usize) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime
            .expect("the runtime can be created")
            .block_on(async {
                let plan = crate::plan::tests::plan("http://a.test/");
                let (near, mut far) = tokio::io::duplex(1 << 20);
                let mut wire = Http1Wire::new(Box::new(near), &plan, Rc::default());
                (0..4).for_each(|slot| assert!(wire.send(slot, 0)));
                let mut events = Vec::new();
                for piece in answers.chunks(len) {
                    far.write_all(piece).await.expect("the pipe has room");
                    poll_fn(|cx| {
                        while wire.receive(cx, &mut events) {}
                        Poll::Ready(())
                    })
                    .await;
                }
                drop(far);
                let mut end = pin!(poll_fn(|cx| {
                    while wire.receive(cx, &mut events) {}
                    Poll::Ready(())
                }));
                end.as_mut().await;
                let shown = |event| match event {
                    Event::Answered {
                        slot,
                        status,
                        body_bytes,
                    } => format!("{slot}: {status}, {body_bytes} B"),
                    Event::Lost { slot, fault, again } => {
                        format!("{slot}: {}, {again}", fault.kind)
                    }
                    Event::Ended => "ended".to_owned(),
                };
                events.into_iter().map(shown).collect()
            })
    }

    #[track_caller]
    fn assert_events_with_any_split(answers: &str, expected: &[&str]) {
        for len in 1..=answers.len() {
            assert_eq!(
                events_of(answers.as_bytes(), len),
                expected,
                "pieces of {len}"
            );
        }
    }

    #[test]
    fn every_framing_is_parsed_with_any_split() {
        assert_events_with_any_split(
            "HTTP/1.1 100 Continue\r\n\r\n\
             HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n2;a=b\r\nxy\r\n0A\r\n0123456789\r\n0\r\nt: u\r\n\r\n\
             HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\n\r\n\r\n!\
             HTTP/1.1 304 Not Modified\r\ncontent-length: 7\r\n\r\n\
             HTTP/1.1 200 OK\r\n\r\nuntil the end",
            &[
                "0: 200, 12 B",
                "1: 404, 5 B",
                "2: 304, 0 B",
                "3: 200, 13 B",
                "ended",
            ],
        );
    }

    #[test]
    fn a_cut_response_is_lost_and_later_ones_are_retry_safe() {
        assert_events_with_any_split(
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234",
            &[
                "0: connection lost, false",
                "1: connection lost, true",
                "2: connection lost, true",
                "3: connection lost, true",
                "ended",
            ],
        );
    }

    #[test]
    fn after_connection_close_the_rest_is_retry_safe() {
        assert_events_with_any_split(
            "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nab",
            &[
                "0: 200, 2 B",
                "1: connection lost, true",
                "2: connection lost, true",
                "3: connection lost, true",
                "ended",
            ],
        );
    }

    #[test]
    fn an_invalid_response_is_malformed() {
        for wrong in [
            "SSH-2.0-x\r\n\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nz\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nabcd\r\nfffffffffffffffc\r\n",
            "HTTP/1.1 101 Switching Protocols\r\n\r\n",
        ] {
            let events = events_of(wrong.as_bytes(), wrong.len());
            assert_eq!(events[0], "0: malformed, false", "{wrong}");
            assert_eq!(events.last().map(String::as_str), Some("ended"), "{wrong}");
        }
    }
}
