//! Peers that mean ill, written frame by frame, against client and server in virtual time.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::{Request, Response};
use spdy::{Body, Frame, HeaderBlock, Priority, SharedRuntime, StreamId, Version, client, server};
use spdy_frame::compress::{Compression, Deflater};
use spdy_frame::frame::{Ping, SynStream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::takes_nothing::TakesNothing;
use crate::support::virtual_world::{VirtualTime, World, wire};

const VERSION: Version = Version::V31;

/// A request.
const REQUEST_HEADERS: [(&str, &str); 5] = [
    (":method", "GET"),
    (":path", "/"),
    (":version", "HTTP/1.1"),
    (":host", "a.example"),
    (":scheme", "http"),
];

/// Frames as a peer writes them.
struct FrameWriter {
    deflater: Deflater,
    wire: BytesMut,
}

impl FrameWriter {
    fn new() -> Self {
        Self {
            deflater: Deflater::new(VERSION, Compression::CrimeSafe),
            wire: BytesMut::new(),
        }
    }

    fn syn(
        &mut self,
        id: u32,
        of: u32,
        unidirectional: bool,
        pairs: &[(&'static str, &'static str)],
    ) {
        let headers: HeaderBlock = pairs.iter().copied().collect();
        let mut block = BytesMut::new();
        self.deflater.deflate(&headers, &mut block);
        self.frame(&Frame::SynStream(SynStream {
            stream_id: StreamId::new(id),
            associated_to: StreamId::new(of),
            priority: Priority::HIGHEST,
            fin: true,
            unidirectional,
            block: block.freeze(),
        }));
    }

    fn frame(&mut self, frame: &Frame) {
        frame.encode(VERSION, &mut self.wire);
    }
}

fn world() -> (Arc<World>, SharedRuntime) {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    (world, runtime)
}

/// A client and a server that are connected without a delay.
fn peers(world: &Arc<World>, runtime: &SharedRuntime) -> (client::Session, server::Accept) {
    let (near, far) = wire(world, Duration::ZERO);
    let (accept, connection) = server::Builder::new(VERSION).handshake(far, runtime.clone());
    connection.spawn();
    let (session, connection) = client::Builder::new(VERSION).handshake(near, runtime.clone());
    connection.spawn();
    (session, accept)
}

/// Only queued DATA had a deadline: a client that requested answers without a body, held one stream open
/// and read nothing was served for ever.
#[test]
fn a_peer_that_reads_nothing_hits_the_write_timeout() {
    let (world, runtime) = world();
    let mut hand = FrameWriter::new();
    hand.syn(1, 0, false, &REQUEST_HEADERS);
    hand.frame(&Frame::Ping(Ping { id: 1 }));
    let server = server::Builder::new(VERSION).serve(
        TakesNothing(hand.wire.freeze()),
        runtime.clone(),
        |_| std::future::pending::<Response<Body>>(),
    );
    let result = Arc::<Mutex<Option<(Duration, bool)>>>::default();
    let (result_slot, clock) = (result.clone(), runtime.clone());
    runtime.spawn(Box::pin(async move {
        let how = server.await;
        let elapsed = clock.now() - spdy::Instant::ZERO;
        *result_slot.lock().expect("one thread") = Some((elapsed, how.is_err()));
    }));
    world.run();
    let result = result.lock().expect("one thread").take();
    assert_eq!(result, Some((Duration::from_secs(60), true)));
}

/// The result of `work`, and the time since the start of the world.
type Outcome = Arc<Mutex<Option<(Duration, String)>>>;

fn outcome<T>(
    runtime: &SharedRuntime,
    work: impl Future<Output = Result<T, spdy::Error>> + Send + 'static,
) -> Outcome {
    let (outcome, clock) = (Outcome::default(), runtime.clone());
    let result_slot = outcome.clone();
    runtime.spawn(Box::pin(async move {
        let how = work.await.err();
        let how = how.map_or_else(|| "done".to_owned(), |error| error.to_string());
        let elapsed = clock.now() - spdy::Instant::ZERO;
        *result_slot.lock().expect("one thread") = Some((elapsed, how));
    }));
    outcome
}

fn upload(bytes: usize) -> Request<Body> {
    let request = Request::post("http://a.example/");
    request.body(Body::full(vec![7; bytes])).expect("valid")
}

/// Only servers had a deadline: an upload to one that reads nothing waited for ever.
#[test]
fn an_unread_upload_fails_after_a_minute_alone() {
    let (world, runtime) = world();
    let (near, far) = wire(&world, Duration::ZERO);
    let reads_none = |request: Request<Body>| async move {
        let _unread = request.into_body();
        std::future::pending::<Response<Body>>().await
    };
    let mut builder = server::Builder::new(VERSION);
    builder.config_mut().idle_timeout = None;
    let server = builder.serve(far, runtime.clone(), reads_none);
    runtime.spawn(Box::pin(async move { drop(server.await) }));
    let (session, connection) = client::Builder::new(VERSION).handshake(near, runtime.clone());
    connection.spawn();
    let blocked_outcome = outcome(
        &runtime,
        session.request(upload(1 << 20), Priority::HIGHEST),
    );
    // Everything fits into the windows, so unanswered requests are not due to our limit.
    let small_outcome = outcome(&runtime, session.request(upload(60_000), Priority::HIGHEST));
    let (clock, stats) = (runtime.clone(), Arc::<Mutex<_>>::default());
    let stats_slot = stats.clone();
    runtime.spawn(Box::pin(async move {
        clock.sleep_until(spdy::Instant::from_millis(61_000)).await;
        *stats_slot.lock().expect("one thread") = Some(session.stats().limits.to_string());
        drop(session);
    }));
    world.run();
    let expected = "stream 1 was reset locally: the peer granted no window for its DATA for 60s";
    let blocked_outcome = blocked_outcome.lock().expect("one thread").take();
    assert_eq!(
        blocked_outcome,
        Some((Duration::from_secs(60), expected.to_owned()))
    );
    let small_outcome = small_outcome.lock().expect("one thread").take();
    assert!(small_outcome.is_none_or(|(elapsed, _)| elapsed > Duration::from_secs(60)));
    let limits = stats.lock().expect("one thread").take();
    assert_eq!(limits.as_deref(), Some("stream_write_timeout 1"));
}

/// Raw streams to Kubernetes' peers may be quiet for hours: a terminal that is held, a program that rests.
#[test]
fn an_unreading_server_times_out_later_over_an_upgrade() {
    for (builder, write_timeout, expected, limit) in [
        (
            client::Builder::new(VERSION),
            Duration::from_secs(60),
            "the connection failed: the peer accepted no bytes for 60s",
            "write_timeout 1",
        ),
        (
            spdy::upgrade::client_builder(),
            spdy::upgrade::IDLE_TIMEOUT,
            "the session was lost: nothing sent or received for 14400s",
            "silence_timeout 1",
        ),
    ] {
        let (world, runtime) = world();
        let (session, connection) = builder.handshake(TakesNothing(Bytes::new()), runtime.clone());
        connection.spawn();
        let blocked_outcome = outcome(
            &runtime,
            session.request(upload(1 << 20), Priority::HIGHEST),
        );
        world.run();
        let blocked_outcome = blocked_outcome.lock().expect("one thread").take();
        assert_eq!(blocked_outcome, Some((write_timeout, expected.to_owned())));
        assert_eq!(session.stats().limits.to_string(), limit);
    }
}

/// A stream that has ended when it opens is not concurrent, so no limit applied: such streams waited to be
/// taken by the million.
#[test]
fn untaken_pushes_wait_up_to_the_limit() {
    let (world, runtime) = world();
    let (near, mut far) = wire(&world, Duration::ZERO);
    let builder = client::Builder::new(VERSION).max_concurrent_streams(3);
    let (session, mut pushes, connection) = builder.handshake_with_pushes(near, runtime.clone());
    connection.spawn();
    let request = Request::get("http://a.example/").body(Body::empty());
    let exchange = session.request(request.expect("valid"), Priority::HIGHEST);
    let push_ids = Arc::<Mutex<Vec<u32>>>::default();
    let (id_log, clock) = (push_ids.clone(), runtime.clone());
    runtime.spawn(Box::pin(async move {
        let mut hand = FrameWriter::new();
        for id in 1..=100 {
            hand.syn(
                2 * id,
                1,
                true,
                &[
                    (":path", "/pushed"),
                    (":host", "a.example"),
                    (":scheme", "http"),
                    (":status", "200"),
                    (":version", "HTTP/1.1"),
                ],
            );
        }
        // The request first: a push belongs to a stream that is open.
        let mut buffer = [0; 1024];
        let _ = far.read(&mut buffer).await.expect("a request");
        far.write_all(&hand.wire).await.expect("a wire");
        clock
            .sleep_until(clock.now() + Duration::from_secs(1))
            .await;
        // It closes the connection, so that the pushes come to an end.
        drop(far);
    }));
    let clock = runtime.clone();
    runtime.spawn(Box::pin(async move {
        clock
            .sleep_until(clock.now() + Duration::from_millis(500))
            .await;
        while let Some(push) = pushes.next().await {
            id_log.lock().expect("one thread").push(push.id().value());
        }
        drop((exchange, session));
    }));
    world.run();
    assert_eq!(*push_ids.lock().expect("one thread"), [2, 4, 6]);
}

#[test]
fn untaken_unidirectional_streams_wait_up_to_the_limit() {
    let (world, runtime) = world();
    let (near, far) = wire(&world, Duration::ZERO);
    let builder = server::Builder::new(VERSION).max_concurrent_streams(3);
    let (mut accept, connection) = builder.handshake(far, runtime.clone());
    connection.spawn();
    let (session, connection) = client::Builder::new(VERSION).handshake(near, runtime.clone());
    connection.spawn();
    let stream_ids = Arc::<Mutex<Vec<u32>>>::default();
    let id_log = stream_ids.clone();
    runtime.spawn(Box::pin(async move {
        for _ in 0..100 {
            let mut options = client::OpenOptions::default();
            options.unidirectional = true;
            let headers = [("x", "y")].into_iter().collect();
            let mut stream = session.open(headers, options).await.expect("a stream");
            stream.finish().expect("an end");
            session.ping().await.expect("the session is alive");
        }
        drop(session);
        while let Some(incoming) = accept.next().await {
            id_log
                .lock()
                .expect("one thread")
                .push(incoming.id().value());
        }
    }));
    world.run();
    assert_eq!(*stream_ids.lock().expect("one thread"), [1, 3, 5]);
}

/// The service ran, and its answer had nowhere to go.
#[test]
fn a_request_on_a_one_way_stream_is_reset_and_never_served() {
    let (world, runtime) = world();
    let (near, far) = wire(&world, Duration::ZERO);
    let served_count = Arc::<Mutex<usize>>::default();
    let count = served_count.clone();
    let server = server::Builder::new(VERSION).serve(far, runtime.clone(), move |_| {
        *count.lock().expect("one thread") += 1;
        std::future::ready(Response::new(Body::empty()))
    });
    runtime.spawn(Box::pin(async move { drop(server.await) }));
    let (session, connection) = client::Builder::new(VERSION).handshake(near, runtime.clone());
    connection.spawn();
    let failure = Arc::<Mutex<Option<spdy::Error>>>::default();
    let failure_slot = failure.clone();
    runtime.spawn(Box::pin(async move {
        let mut options = client::OpenOptions::default();
        options.unidirectional = true;
        let headers = REQUEST_HEADERS.iter().copied().collect();
        let mut stream = session.open(headers, options).await.expect("a stream");
        *failure_slot.lock().expect("one thread") = stream.failed().await;
    }));
    world.run();
    let status = failure
        .lock()
        .expect("one thread")
        .as_ref()
        .and_then(spdy::Error::reset_status);
    assert_eq!(status, Some(spdy::RstStatus::PROTOCOL_ERROR));
    assert_eq!(*served_count.lock().expect("one thread"), 0);
}

/// The driver stopped reading for its queue, emptied the queue, and went to sleep without a waker on the
/// connection.
#[test]
fn reading_continues_when_the_full_queue_is_written() {
    let (world, runtime) = world();
    let (mut near, far) = wire(&world, Duration::ZERO);
    let mut builder = server::Builder::new(VERSION);
    builder.config_mut().control_queue_frames = 10;
    let (accept, connection) = builder.handshake(far, runtime.clone());
    connection.spawn();
    let received = Arc::<Mutex<BytesMut>>::default();
    let (byte_log, clock) = (received.clone(), runtime.clone());
    runtime.spawn(Box::pin(async move {
        let mut hand = FrameWriter::new();
        for id in 1..=15 {
            // For a stream that is not there: each makes the server queue RST_STREAM.
            hand.frame(&Frame::Data(spdy_frame::frame::Data {
                stream_id: StreamId::new(2 * id + 1),
                payload: Bytes::from_static(b"x"),
                fin: false,
            }));
        }
        near.write_all(&hand.wire.split()).await.expect("a wire");
        hand.frame(&Frame::Ping(Ping { id: 7 }));
        near.write_all(&hand.wire).await.expect("a wire");
        let mut piece = [0; 4096];
        while let Ok(length @ 1..) = near.read(&mut piece).await {
            // Some timeout wakes everybody in the end.
            if clock.now() > spdy::Instant::from_millis(1000) {
                return;
            }
            byte_log
                .lock()
                .expect("one thread")
                .extend_from_slice(&piece[..length]);
        }
    }));
    world.run();
    drop(accept);
    let mut echo = BytesMut::new();
    Frame::Ping(Ping { id: 7 }).encode(VERSION, &mut echo);
    let received = received.lock().expect("one thread");
    assert!(received.windows(echo.len()).any(|bytes| *bytes == echo[..]));
}

/// The session forgets a cancelled request at once, but its handler still runs: reset after reset, the
/// work piled up past every limit on streams.
#[test]
fn cancelled_requests_count_until_the_work_on_them_has_stopped() {
    let (world, runtime) = world();
    let (near, far) = wire(&world, Duration::ZERO);
    let mut builder = server::Builder::new(VERSION).max_concurrent_streams(100);
    builder.config_mut().ended_streams_in_work = 3;
    let (mut accept, connection) = builder.handshake(far, runtime.clone());
    connection.spawn();
    let server = accept.handle();
    let (session, connection) = client::Builder::new(VERSION).handshake(near, runtime.clone());
    connection.spawn();
    let refusals = Arc::<Mutex<Vec<bool>>>::default();
    let refusal_log = refusals.clone();
    runtime.spawn(Box::pin(async move {
        // Work that ignores its cancellation: it holds its stream.
        let mut work = Vec::new();
        let mut open_request = async |work: &mut Vec<_>| {
            let options = client::OpenOptions::default();
            let headers = REQUEST_HEADERS.iter().copied().collect();
            let stream = session.open(headers, options).await.expect("a stream");
            session.ping().await.expect("the session is alive");
            let incoming = accept.next().now_or_never().flatten();
            let is_refused = incoming.is_none();
            work.extend(incoming.and_then(|incoming| incoming.into_request().ok()));
            stream.reset(spdy::RstStatus::CANCEL);
            session.ping().await.expect("the session is alive");
            is_refused
        };
        for _ in 0..6 {
            let is_refused = open_request(&mut work).await;
            refusal_log.lock().expect("one thread").push(is_refused);
        }
        work.clear();
        let is_refused = open_request(&mut work).await;
        refusal_log.lock().expect("one thread").push(is_refused);
        let limits = server.stats().limits;
        assert_eq!(limits.of(spdy::Limit::EndedStreamsInWork), 2, "{limits}");
    }));
    world.run();
    let refusals = refusals.lock().expect("one thread").clone();
    // At three and one more that is work still; then no more until the work has stopped.
    assert_eq!(refusals, [false, false, false, false, true, true, false]);
}

/// The reset dropped what had come and left the FIN behind it, so that a reader found a whole body of
/// no bytes.
#[test]
fn a_locally_reset_request_does_not_read_as_complete() {
    let (world, runtime) = world();
    let (session, mut accept) = peers(&world, &runtime);
    let clock = runtime.clone();
    let request = Request::post("http://a.example/").body(Body::from("a question"));
    let exchange = session.request(request.expect("valid"), Priority::HIGHEST);
    runtime.spawn(Box::pin(async move { drop(exchange.await) }));
    let is_error = Arc::<Mutex<Option<bool>>>::default();
    let result_slot = is_error.clone();
    runtime.spawn(Box::pin(async move {
        let incoming = accept.next().await.expect("a question");
        let (request, responder) = incoming.into_request().expect("a request");
        // All of it is there, and its end.
        clock
            .sleep_until(clock.now() + Duration::from_secs(1))
            .await;
        responder.reset(spdy::RstStatus::INTERNAL_ERROR);
        let body = request.into_body().collect_up_to(100).await;
        *result_slot.lock().expect("one thread") = Some(body.is_err());
    }));
    world.run();
    drop(session);
    assert_eq!(*is_error.lock().expect("one thread"), Some(true));
}

/// The upload failed in a task of its own and reset the stream, and the reader of the answer was not
/// woken: it waited until the session ended.
#[test]
fn an_upload_failure_reaches_the_response_reader() {
    let (world, runtime) = world();
    let (session, mut accept) = peers(&world, &runtime);
    let clock = runtime.clone();
    let upload = futures_util::stream::once(async move {
        clock
            .sleep_until(clock.now() + Duration::from_secs(5))
            .await;
        Err::<Bytes, _>(io::Error::other("broken"))
    });
    let request = Request::post("http://a.example/").body(Body::from_stream(upload));
    let exchange = session.request(request.expect("valid"), Priority::HIGHEST);
    runtime.spawn(Box::pin(async move {
        let incoming = accept.next().await.expect("a question");
        let (request, responder) = incoming.into_request().expect("a request");
        // The answer begins at once and never ends.
        let endless = futures_util::stream::pending::<Result<Bytes, io::Error>>();
        let response = Response::new(Body::from_stream(endless));
        let _ = responder.respond(response).await;
        drop(request);
    }));
    let outcome = Arc::<Mutex<Option<(Duration, bool)>>>::default();
    let (outcome_slot, clock) = (outcome.clone(), runtime.clone());
    runtime.spawn(Box::pin(async move {
        let response = exchange.await.expect("a response head");
        let body = response.into_body().collect_up_to(100).await;
        let elapsed = clock.now() - spdy::Instant::ZERO;
        *outcome_slot.lock().expect("one thread") = Some((elapsed, body.is_err()));
    }));
    world.run();
    drop(session);
    let outcome = *outcome.lock().expect("one thread");
    assert_eq!(outcome, Some((Duration::from_secs(5), true)));
}
