//! Many tasks on many threads, some of which lose interest: no byte is wrong and nothing is left over.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake, Waker};

use bytes::Bytes;
use http::{Request, Response};
use spdy::{Body, Priority, Version};

use crate::support::{bytes_of, connect_to_service, get, pattern, post};

/// A step of a linear congruential generator: random enough to choose what is dropped when.
fn next(seed: &mut u64) -> u64 {
    *seed = seed
        .wrapping_mul(6_364_136_223_846_793_005)
        .wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tasks_on_four_threads_share_a_session_and_leave_it_empty() {
    for version in Version::ALL {
        let (session, server_task) =
            connect_to_service(version, |request: Request<Body>| async move {
                Response::new(request.into_body())
            });
        let tasks = (0..32_u64).map(|task| {
            let session = session.clone();
            tokio::spawn(async move {
                let mut seed = task;
                for _ in 0..40 {
                    let payload = pattern((next(&mut seed) % 100_000) as usize);
                    let priority = Priority::new((next(&mut seed) % 8) as u8);
                    let request =
                        session.request(post("/echo", Body::full(payload.clone())), priority);
                    match next(&mut seed) % 4 {
                        // Dropped before its answer, after its head, or read to its end.
                        0 => drop(request),
                        1 => drop(request.await.expect("a response")),
                        _ => {
                            let back = bytes_of(request.await.expect("a response")).await;
                            assert!(
                                back == payload,
                                "task {task}: {} bytes for {}",
                                back.len(),
                                payload.len()
                            );
                        }
                    }
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.expect("no panic");
        }
        assert_eq!(session.active_streams(), 0, "{version}");
        drop(session);
        server_task
            .await
            .expect("no panic")
            .expect("an orderly end");
    }
}

/// A waker that holds a body, as the waker of a task holds the task.
struct Holder(Mutex<Option<Body>>);

impl Wake for Holder {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("no panic").take());
    }
}

/// The body's drop takes the session's lock. Regression: wakers that were replaced were dropped under the lock, so a small executor
/// whose tasks are owned by their wakers deadlocked.
#[tokio::test]
async fn dropping_a_waker_may_drop_a_stream() {
    let (session, _server_task) =
        connect_to_service(Version::V31, |request: Request<Body>| async move {
            if request.uri().path() == "/never" {
                std::future::pending::<()>().await;
            }
            Response::new(Body::from_stream(futures_util::stream::pending::<
                Result<Bytes, Infallible>,
            >()))
        });
    let body = session
        .request(get("/held"), Priority::HIGHEST)
        .await
        .expect("a head")
        .into_body();
    let mut never = std::pin::pin!(session.request(get("/never"), Priority::HIGHEST));
    let waker = Waker::from(Arc::new(Holder(Mutex::new(Some(body)))));
    assert!(
        never
            .as_mut()
            .poll(&mut Context::from_waker(&waker))
            .is_pending()
    );
    drop(waker);
    assert_eq!(session.active_streams(), 2);
    assert!(
        never
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
            .is_pending()
    );
    assert_eq!(
        session.active_streams(),
        1,
        "the held body was dropped with the first waker"
    );
}
