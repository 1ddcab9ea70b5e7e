//! The same bytes give the same message, for every cut of the transport and every order of polls.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use bytes::BytesMut;
use futures_util::FutureExt;
use http::{HeaderMap, Method, Request};
use http_body::Body as _;
use proptest::prelude::*;
use spdy::runtime::{BoxFuture, Runtime};
use spdy::{
    Body, Frame, HeaderBlock, Instant, Priority, SharedRuntime, StreamId, Version, client, server,
};
use spdy_frame::compress::{Compression, Deflater};
use spdy_frame::frame::{Data, Headers, RstStream, SynReply, SynStream};
use spdy_http::header_names::Names;
use tokio::io::{AsyncRead, ReadBuf, join, sink};

/// A clock that does not advance: nothing here may depend on it.
struct FrozenClock;

impl Runtime for FrozenClock {
    fn now(&self) -> Instant {
        Instant::ZERO
    }

    fn sleep_until(&self, _: Instant) -> BoxFuture<()> {
        Box::pin(std::future::pending())
    }

    fn spawn(&self, _: BoxFuture<()>) {}
}

/// The input of a connection, which the test supplies.
#[derive(Clone, Default)]
struct Wire(Arc<Mutex<(VecDeque<u8>, bool)>>);

impl Wire {
    fn feed(&self, bytes: &[u8]) {
        self.0.lock().expect("one thread").0.extend(bytes);
    }

    fn end(&self) {
        self.0.lock().expect("one thread").1 = true;
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut wire = self.0.lock().expect("one thread");
        let length = wire.0.len().min(buf.remaining());
        if length == 0 && !wire.1 {
            return Poll::Pending; // polled again without a waker
        }
        let bytes: Vec<u8> = wire.0.drain(..length).collect();
        buf.put_slice(&bytes);
        Poll::Ready(Ok(()))
    }
}

/// The bytes received after the first block.
#[derive(Clone, Debug)]
enum Piece {
    Headers(Vec<usize>),
    Data(usize),
}

/// How it ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum End {
    /// FIN on the last frame.
    Fin,
    /// FIN on an empty DATA of its own.
    EmptyFin,
    Reset,
    /// Of the transport.
    Cut,
    Never,
}

/// One turn: bytes arrive, or a task is polled.
#[derive(Clone, Debug)]
enum Turn {
    Bytes(usize),
    Driver,
    Reader,
}

/// The parts of a message that its reader received.
#[derive(Debug, Default, Eq, PartialEq)]
struct MessageLog {
    head: Option<String>,
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    /// The end, or the error.
    end: Option<String>,
}

impl MessageLog {
    /// One frame of `body`; `false` while there is none.
    fn read(&mut self, body: &mut Body, cx: &mut Context<'_>) -> bool {
        if self.end.is_some() {
            return false;
        }
        match Pin::new(body).poll_frame(cx) {
            Poll::Pending => return false,
            Poll::Ready(None) => self.end = Some("end".into()),
            Poll::Ready(Some(Err(error))) => self.end = Some(error.to_string()),
            Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                Ok(data) => self.body.extend_from_slice(&data),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            },
        }
        true
    }
}

/// A few names, so that they meet: one of the first line, one that is skipped, one that counts.
fn block(version: Version, first: &[(&str, &str)], names: &[usize]) -> HeaderBlock {
    let field_names = Names::of(version);
    let pool = [
        "a",
        "b",
        "c",
        "d",
        "e",
        "te",
        "content-length",
        field_names.status,
    ];
    let mut pairs: BTreeMap<&str, &str> =
        names.iter().map(|index| (pool[index % 8], "5")).collect();
    pairs.extend(first.iter().copied());
    pairs.into_iter().collect()
}

/// The frames of one side.
struct FrameWriter {
    version: Version,
    deflater: Deflater,
    wire: BytesMut,
}

impl FrameWriter {
    fn new(version: Version) -> Self {
        Self {
            version,
            deflater: Deflater::new(version, Compression::CrimeSafe),
            wire: BytesMut::new(),
        }
    }

    fn deflated(&mut self, headers: &HeaderBlock) -> bytes::Bytes {
        let mut block = BytesMut::new();
        self.deflater.deflate(headers, &mut block);
        block.freeze()
    }

    fn frame(&mut self, frame: &Frame) {
        frame.encode(self.version, &mut self.wire);
    }

    /// The frames after the first block, on stream 1.
    fn rest(mut self, pieces: &[Piece], end: End) -> Vec<u8> {
        let stream_id = StreamId::new(1);
        for (at, piece) in pieces.iter().enumerate() {
            let fin = end == End::Fin && at + 1 == pieces.len();
            match piece {
                Piece::Headers(names) => {
                    let headers = block(self.version, &[], names);
                    let block = self.deflated(&headers);
                    self.frame(&Frame::Headers(Headers {
                        stream_id,
                        fin,
                        block,
                    }));
                }
                Piece::Data(length) => self.frame(&Frame::Data(Data {
                    stream_id,
                    payload: vec![b'0' + at as u8; *length].into(),
                    fin,
                })),
            }
        }
        match end {
            End::EmptyFin => self.frame(&Frame::Data(Data {
                stream_id,
                payload: bytes::Bytes::new(),
                fin: true,
            })),
            End::Reset => self.frame(&Frame::RstStream(RstStream {
                stream_id,
                status: spdy::RstStatus::INTERNAL_ERROR,
            })),
            End::Fin | End::Cut | End::Never => {}
        }
        self.wire.to_vec()
    }
}

/// Takes all turns, then polls both until neither makes progress.
fn take_turns(
    wire: &Wire,
    bytes: &[u8],
    cut: bool,
    turns: &[Turn],
    mut driver: impl FnMut(),
    mut reader: impl FnMut() -> bool,
) {
    driver(); // the request is sent before its response arrives
    let mut rest = bytes;
    for turn in turns {
        match turn {
            Turn::Bytes(count) => {
                let (now, later) = rest.split_at((*count).min(rest.len()));
                wire.feed(now);
                rest = later;
            }
            Turn::Driver => driver(),
            Turn::Reader => _ = reader(),
        }
    }
    wire.feed(rest);
    driver();
    if cut {
        wire.end();
    }
    for _ in 0..3 {
        driver();
        while reader() {}
    }
}

/// The result of a client for the response bytes `wire`.
fn response_of(
    version: Version,
    method: &Method,
    bytes: &[u8],
    cut: bool,
    turns: &[Turn],
) -> MessageLog {
    let wire = Wire::default();
    let runtime = SharedRuntime::new(FrozenClock);
    let (session, connection) =
        client::Builder::new(version).handshake(join(wire.clone(), sink()), runtime);
    let request = Request::builder().method(method).uri("http://a.example/");
    let request = request.body(Body::empty()).expect("a request");
    let mut exchange = Some(session.request(request, Priority::HIGHEST));
    let (mut message_log, mut body) = (MessageLog::default(), None);
    let mut driving = connection.run().boxed().fuse();
    let driver = || {
        let _ = driving.poll_unpin(&mut Context::from_waker(Waker::noop()));
    };
    let reader = || {
        let cx = &mut Context::from_waker(Waker::noop());
        match (&mut exchange, &mut body) {
            (Some(future), _) => match future.poll_unpin(cx) {
                Poll::Pending => return false,
                Poll::Ready(Ok(response)) => {
                    let (head, response_body) = response.into_parts();
                    message_log.head = Some(format!("{} {:?}", head.status, head.headers));
                    body = Some(response_body);
                }
                Poll::Ready(Err(error)) => message_log.end = Some(error.to_string()),
            },
            (None, Some(body)) => return message_log.read(body, cx),
            (None, None) => return false,
        }
        exchange = None;
        true
    };
    take_turns(&wire, bytes, cut, turns, driver, reader);
    message_log
}

/// The result of a server for the request bytes `wire`.
fn request_of(version: Version, bytes: &[u8], turns: &[Turn]) -> MessageLog {
    let wire = Wire::default();
    let runtime = SharedRuntime::new(FrozenClock);
    let (mut accept, connection) =
        server::Builder::new(version).handshake(join(wire.clone(), sink()), runtime);
    let (mut message_log, mut accepted) = (MessageLog::default(), None);
    let mut driving = connection.run().boxed().fuse();
    let driver = || {
        let _ = driving.poll_unpin(&mut Context::from_waker(Waker::noop()));
    };
    let reader = || {
        let cx = &mut Context::from_waker(Waker::noop());
        if let Some((body, _)) = &mut accepted {
            return message_log.read(body, cx);
        }
        let Poll::Ready(Some(incoming)) = accept.poll_next(cx) else {
            return false;
        };
        let (request, responder) = incoming.into_request().expect("a request");
        let (head, body) = request.into_parts();
        message_log.head = Some(format!("{} {} {:?}", head.method, head.uri, head.headers));
        accepted = Some((body, responder));
        true
    };
    take_turns(&wire, bytes, false, turns, driver, reader);
    message_log
}

fn pieces() -> impl Strategy<Value = Vec<Piece>> {
    let piece = prop_oneof![
        3 => prop::collection::vec(0..8_usize, 0..3).prop_map(Piece::Headers),
        2 => (0..40_usize).prop_map(Piece::Data),
    ];
    prop::collection::vec(piece, 0..6)
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = prop_oneof![
        (1..60_usize).prop_map(Turn::Bytes),
        Just(Turn::Driver),
        Just(Turn::Reader),
    ];
    prop::collection::vec(turn, 0..60)
}

fn any_version() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}

proptest! {
    #[test]
    fn a_response_is_the_same_with_any_split_and_poll_order(
        version in any_version(),
        method in prop::sample::select(vec![Method::GET, Method::HEAD, Method::CONNECT]),
        status in prop::sample::select(vec!["200 OK", "200 OK", "404", "204", "304", "100", "no"]),
        names in prop::collection::vec(0..7_usize, 0..3),
        pieces in pieces(),
        end in prop::sample::select(vec![End::Fin, End::EmptyFin, End::Reset, End::Cut, End::Never]),
        turns in turns(),
    ) {
        let mut hand = FrameWriter::new(version);
        let field_names = Names::of(version);
        let headers = block(version, &[(field_names.status, status), (field_names.version, "HTTP/1.1")], &names);
        let block = hand.deflated(&headers);
        hand.frame(&Frame::SynReply(SynReply {
            stream_id: StreamId::new(1),
            fin: end == End::Fin && pieces.is_empty(),
            block,
        }));
        let (wire, cut) = (hand.rest(&pieces, end), end == End::Cut);
        let in_one_piece = response_of(version, &method, &wire, cut, &[]);
        let in_pieces = response_of(version, &method, &wire, cut, &turns);
        prop_assert_eq!(in_pieces, in_one_piece);
    }

    #[test]
    fn a_request_is_the_same_with_any_split_and_poll_order(
        version in any_version(),
        names in prop::collection::vec(0..6_usize, 0..3),
        pieces in pieces(),
        end in prop::sample::select(vec![End::Fin, End::EmptyFin, End::Never]),
        turns in turns(),
    ) {
        let mut hand = FrameWriter::new(version);
        let field_names = Names::of(version);
        let first = [
            (field_names.method, "POST"),
            (field_names.path, "/"),
            (field_names.version, "HTTP/1.1"),
            (field_names.host, "a.example"),
            (field_names.scheme, "http"),
        ];
        let block = hand.deflated(&block(version, &first, &names));
        hand.frame(&Frame::SynStream(SynStream {
            stream_id: StreamId::new(1),
            associated_to: StreamId::ZERO,
            priority: Priority::HIGHEST,
            unidirectional: false,
            fin: end == End::Fin && pieces.is_empty(),
            block,
        }));
        let wire = hand.rest(&pieces, end);
        let in_one_piece = request_of(version, &wire, &[]);
        let in_pieces = request_of(version, &wire, &turns);
        prop_assert_eq!(in_pieces, in_one_piece);
    }
}
