//! A client that changes its mind at every step, against a server that does so too: whatever is dropped
//! where, nothing is left over, and no credit is lost.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{Either, select};
use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::{Body, HeaderBlock, Priority, SharedRuntime, Version, client, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::virtual_world::{VirtualTime, World, wire};

/// A linear congruential generator (Knuth's constants), so that a seed determines the whole run.
#[derive(Clone, Copy)]
struct TestRandom(u64);

impl TestRandom {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    fn fork(&mut self) -> Self {
        Self(self.below(u64::from(u32::MAX)))
    }
}

/// Runs `future`, but for no longer than some milliseconds.
async fn for_a_while<F: Future + Unpin>(
    runtime: &SharedRuntime,
    random: &mut TestRandom,
    future: F,
) -> Option<F::Output> {
    let until = runtime.now() + Duration::from_millis(random.below(80));
    match select(future, runtime.sleep_until(until)).await {
        Either::Left((output, _)) => Some(output),
        Either::Right(_) => None,
    }
}

fn body(random: &mut TestRandom, runtime: &SharedRuntime) -> Body {
    let length = random.below(100_000) as usize;
    if random.below(2) == 0 {
        return Body::full(vec![b'x'; length]);
    }
    // In pieces, late, and now and then broken off.
    let (mut random, runtime) = (random.fork(), runtime.clone());
    Body::from_stream(futures_util::stream::unfold(length, move |remaining| {
        let (piece, wait) = (random.below(9_000) as usize, random.below(10));
        let breaks = random.below(20) == 0;
        let runtime = runtime.clone();
        async move {
            runtime
                .sleep_until(runtime.now() + Duration::from_millis(wait))
                .await;
            if breaks {
                return Some((Err(std::io::Error::other("broken off")), 0));
            }
            let piece = piece.min(remaining);
            (remaining > 0).then(|| {
                (
                    Ok(vec![b'y'; piece.max(1)].into()),
                    remaining - piece.max(1).min(remaining),
                )
            })
        }
    }))
}

/// One exchange, left at any point.
async fn run_request(session: client::Session, runtime: SharedRuntime, mut random: TestRandom) {
    let request = Request::post(format!("http://a.example/{}", random.below(8)))
        .body(body(&mut random, &runtime))
        .expect("valid");
    let priority = Priority::new(random.below(8) as u8);
    let exchange = session.request(request, priority);
    let Some(Ok(mut response)) = for_a_while(&runtime, &mut random, exchange).await else {
        return;
    };
    for _ in 0..random.below(12) {
        match for_a_while(&runtime, &mut random, Box::pin(response.frame())).await {
            Some(Some(Ok(_))) => {}
            _ => return,
        }
    }
}

/// One raw stream, left at any point.
async fn run_stream(session: client::Session, runtime: SharedRuntime, mut random: TestRandom) {
    let headers: HeaderBlock = [("raw", "stream")].into_iter().collect();
    let mut options = client::OpenOptions::default();
    options.unidirectional = random.below(4) == 0;
    options.fin = random.below(8) == 0;
    let opening = Box::pin(session.open(headers, options));
    let Some(Ok(mut stream)) = for_a_while(&runtime, &mut random, opening).await else {
        return;
    };
    let mut piece = vec![b'z'; 20_000];
    for _ in 0..random.below(12) {
        let step = random.below(5);
        let done = match step {
            0 => for_a_while(&runtime, &mut random, Box::pin(stream.read(&mut piece)))
                .await
                .is_some_and(|result| result.is_err()),
            1 | 2 => for_a_while(&runtime, &mut random, Box::pin(stream.write_all(&piece)))
                .await
                .is_some_and(|result| result.is_err()),
            3 => stream.finish().is_err(),
            _ => for_a_while(&runtime, &mut random, Box::pin(stream.reply()))
                .await
                .is_some_and(|reply| reply.is_err()),
        };
        if done {
            return;
        }
    }
    if random.below(4) == 0 {
        stream.reset(spdy::RstStatus::CANCEL);
    }
}

async fn serve(incoming: server::Incoming, runtime: SharedRuntime, mut random: TestRandom) {
    if random.below(10) == 0 {
        return;
    }
    if incoming.headers().get("raw").is_some() {
        let Ok(mut stream) = incoming.accept_raw(&HeaderBlock::new()) else {
            return;
        };
        let mut piece = vec![b'z'; 20_000];
        for _ in 0..random.below(12) {
            let _ = for_a_while(&runtime, &mut random, Box::pin(stream.read(&mut piece))).await;
            let _ = for_a_while(&runtime, &mut random, Box::pin(stream.write_all(&piece))).await;
        }
        return;
    }
    let Ok((request, responder)) = incoming.into_request() else {
        return;
    };
    let last = request.uri().path() == "/last";
    let mut question = request.into_body();
    for _ in 0..random.below(12) {
        let _ = for_a_while(&runtime, &mut random, Box::pin(question.frame())).await;
    }
    if random.below(4) == 0 {
        drop(question);
    }
    if last {
        let large_body = Body::full(vec![b'l'; 3_000_000]);
        responder
            .respond(Response::new(large_body))
            .await
            .expect("a response");
        return;
    }
    let sending = Box::pin(responder.respond(Response::new(body(&mut random, &runtime))));
    let _ = for_a_while(&runtime, &mut random, sending).await;
}

/// Two hundred streams that are given up at any point, then one long answer over the same session.
fn run(version: Version, seed: u64) {
    let mut random = TestRandom(seed);
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (near, far) = wire(&world, Duration::from_millis(5));
    let builder = server::Builder::new(version).session_window_bytes(65_536);
    let mut builder = builder.max_concurrent_streams(20);
    // Here it is all in a second.
    builder.config_mut().floods.aborted_streams = u32::MAX;
    let (mut accept, connection) = builder.handshake(far, runtime.clone());
    connection.spawn();
    let server = accept.handle();
    let builder = client::Builder::new(version)
        .session_window_bytes(65_536)
        .initial_window_bytes(65_536);
    let (session, connection) = builder.handshake(near, runtime.clone());
    connection.spawn();
    let (accepting, mut server_random) = (runtime.clone(), random.fork());
    runtime.spawn(Box::pin(async move {
        while let Some(incoming) = accept.next().await {
            accepting.spawn(Box::pin(serve(
                incoming,
                accepting.clone(),
                server_random.fork(),
            )));
        }
    }));
    let outcome = Arc::<Mutex<Option<(usize, usize, usize)>>>::default();
    let (result_slot, task_runtime) = (outcome.clone(), runtime.clone());
    runtime.spawn(Box::pin(async move {
        for _ in 0..200 {
            let exchange_random = random.fork();
            match random.below(3) {
                0 => task_runtime.spawn(Box::pin(run_stream(
                    session.clone(),
                    task_runtime.clone(),
                    exchange_random,
                ))),
                _ => task_runtime.spawn(Box::pin(run_request(
                    session.clone(),
                    task_runtime.clone(),
                    exchange_random,
                ))),
            }
            let pause = Duration::from_millis(random.below(8));
            task_runtime.sleep_until(task_runtime.now() + pause).await;
        }
        task_runtime
            .sleep_until(task_runtime.now() + Duration::from_secs(20))
            .await;
        let active_streams = (session.active_streams(), server.active_streams());
        // The server drops one in ten; all the others must come whole.
        let mut length = 0;
        for _ in 0..20 {
            let request = Request::get("http://a.example/last").body(Body::empty());
            let exchange = session.request(request.expect("valid"), Priority::HIGHEST);
            if let Ok(response) = exchange.await {
                let body = response.into_body().collect_up_to(4_000_000).await;
                length = body.expect("a whole body").len();
                break;
            }
        }
        *result_slot.lock().expect("one thread") =
            Some((active_streams.0, active_streams.1, length));
    }));
    world.run();
    let outcome = outcome.lock().expect("one thread").take();
    assert_eq!(outcome, Some((0, 0, 3_000_000)), "{version}, seed {seed}");
}

#[test]
fn cancelling_anywhere_leaks_no_stream_and_no_credit() {
    for seed in 0..5 {
        for version in Version::ALL {
            run(version, seed);
        }
    }
}
