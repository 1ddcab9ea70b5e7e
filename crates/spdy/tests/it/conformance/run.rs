//! Runs one input: sends its three parts with time to answer in between, and notes what came back.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Request;
use spdy::{Body, Priority, SharedRuntime, Version, client, server};
use spdy_testkit::conformance::{Case, Receiver};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::application;
use super::run_result::{RequestFailure, Run, decode, version};

use crate::support::virtual_world::{End, VirtualTime, World, wire};

/// Time to answer `setup`, and then `input` and `then`.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_millis(900),
    Duration::from_millis(900),
];

/// The bytes received on the wire.
#[derive(Default)]
struct Log {
    bytes: BytesMut,
    closed: bool,
    response: Option<Result<Bytes, RequestFailure>>,
    /// Objects that the client's application holds: its session, and a body that it does not read.
    open_handles: Vec<Box<dyn Any + Send>>,
}

/// Runs `case` from its first byte until the last answer had its time.
pub(crate) fn run(case: &Case) -> Run {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (peer_end, receiver_end) = wire(&world, Duration::ZERO);
    let log = Arc::<Mutex<Log>>::default();
    match case.receiver {
        Receiver::Server => serve(receiver_end, version(case), &runtime),
        Receiver::Client => start_client(receiver_end, case, &runtime, &log),
    }
    let (mut reader, mut writer) = tokio::io::split(peer_end);
    let reader_log = log.clone();
    runtime.spawn(Box::pin(async move {
        let mut piece = vec![0; 65_536];
        loop {
            let length = reader.read(&mut piece).await.expect("a wire does not fail");
            let mut log = reader_log.lock().expect("one thread");
            if length == 0 {
                log.closed = true;
                return;
            }
            log.bytes.extend_from_slice(&piece[..length]);
        }
    }));
    let result = Arc::<Mutex<Option<Run>>>::default();
    let (result_slot, clock, case_version) = (result.clone(), runtime.clone(), version(case));
    let parts = [&case.setup, &case.input, &case.then].map(|part| part.0.clone());
    runtime.spawn(Box::pin(async move {
        for (part, pause) in parts.iter().zip(PAUSES) {
            // A receiver that left may not take the rest.
            let _ = writer.write_all(part).await;
            clock.sleep_until(clock.now() + pause).await;
        }
        let mut log = log.lock().expect("one thread");
        *result_slot.lock().expect("one thread") = Some(Run {
            frames: decode(case_version, &log.bytes),
            closed: log.closed,
            response: log.response.take(),
        });
    }));
    world.run();
    let run = result.lock().expect("one thread").take();
    run.unwrap_or_else(|| panic!("{} did not finish", case.id))
}

/// A server with the paths that the inputs request.
fn serve(io: End, version: Version, runtime: &SharedRuntime) {
    let builder = server::Builder::new(version);
    let connection = builder.serve(io, runtime.clone(), application::respond);
    runtime.spawn(Box::pin(async move {
        let _ = connection.await; // how it ended is seen on the wire
    }));
}

/// A client that has requested `/`, and accepts pushes.
fn start_client(io: End, case: &Case, runtime: &SharedRuntime, log: &Arc<Mutex<Log>>) {
    // These cases leave the body unread, and presume the initial window of a session.
    let overflows = case.id.starts_with("c_recv_overflow");
    let mut builder = client::Builder::new(version(case));
    if overflows {
        builder = builder.initial_window_bytes(65_536);
    }
    let (session, mut pushes, connection) = builder.handshake_with_pushes(io, runtime.clone());
    connection.spawn();
    runtime.spawn(Box::pin(async move {
        while let Some(push) = pushes.next().await {
            if let Ok(response) = push.response().await {
                let _ = response.into_body().collect_up_to(1 << 20).await;
            }
        }
    }));
    let request = Request::get("http://localhost/").body(Body::empty());
    let log = log.clone();
    let exchange = session.request(request.expect("valid"), Priority::HIGHEST);
    log.lock()
        .expect("one thread")
        .open_handles
        .push(Box::new(session));
    runtime.spawn(Box::pin(async move {
        let response = match exchange.await {
            Ok(unread) if overflows => {
                log.lock()
                    .expect("one thread")
                    .open_handles
                    .push(Box::new(unread));
                return;
            }
            Ok(response) => response
                .into_body()
                .collect_up_to(1 << 20)
                .await
                .map_err(|error| match error.downcast::<spdy::Error>() {
                    Ok(error) => *error,
                    Err(error) => panic!("{error}"),
                }),
            Err(error) => Err(error),
        };
        let response = response.map_err(|error| RequestFailure {
            retry_safe: error.is_retry_safe(),
            reason: error.to_string(),
        });
        log.lock().expect("one thread").response = Some(response);
    }));
}
