//! A client and a server under an executor of a hundred lines, in a time of its own: the library needs
//! no tokio runtime, and the same run gives the same nanoseconds.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use http::{Request, Response};
use http_body_util::BodyExt;
use spdy::runtime::{BoxFuture, Runtime};
use spdy::{Body, Instant, Priority, SharedRuntime, Version, client, server};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The clock, the timers and the tasks that are ready.
#[derive(Default)]
struct World {
    now: Mutex<Instant>,
    timers: Mutex<BTreeMap<(Instant, u64), Waker>>,
    ready: Mutex<VecDeque<Arc<Task>>>,
    numbers: Mutex<u64>,
}

struct Task {
    world: Arc<World>,
    future: Mutex<Option<BoxFuture<()>>>,
}

impl Wake for Task {
    fn wake(self: Arc<Self>) {
        let world = self.world.clone();
        world.ready.lock().expect("one thread").push_back(self);
    }
}

impl World {
    fn now(&self) -> Instant {
        *self.now.lock().expect("one thread")
    }

    /// Runs until nothing is left to do and no timer to wait for.
    fn run(&self) {
        loop {
            while let Some(task) = self
                .ready
                .lock()
                .map(|mut ready| ready.pop_front())
                .expect("one thread")
            {
                let Some(mut future) = task.future.lock().expect("one thread").take() else {
                    continue;
                };
                let waker = Waker::from(task.clone());
                if future
                    .as_mut()
                    .poll(&mut Context::from_waker(&waker))
                    .is_pending()
                {
                    *task.future.lock().expect("one thread") = Some(future);
                }
            }
            let Some(((at, _), waker)) = self.timers.lock().expect("one thread").pop_first() else {
                return;
            };
            *self.now.lock().expect("one thread") = at;
            waker.wake();
        }
    }

    fn wake_at(&self, at: Instant, waker: &Waker) {
        let mut numbers = self.numbers.lock().expect("one thread");
        *numbers += 1;
        self.timers
            .lock()
            .expect("one thread")
            .insert((at, *numbers), waker.clone());
    }
}

struct VirtualTime(Arc<World>);

impl Runtime for VirtualTime {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn sleep_until(&self, deadline: Instant) -> BoxFuture<()> {
        let world = self.0.clone();
        Box::pin(std::future::poll_fn(move |cx| {
            if world.now() >= deadline {
                return Poll::Ready(());
            }
            world.wake_at(deadline, cx.waker());
            Poll::Pending
        }))
    }

    fn spawn(&self, task: BoxFuture<()>) {
        Arc::new(Task {
            world: self.0.clone(),
            future: Mutex::new(Some(task)),
        })
        .wake();
    }
}

/// One direction of a wire: what is under way, with the hour of its arrival.
#[derive(Default)]
struct Direction {
    under_way: VecDeque<(Instant, Vec<u8>)>,
    closed_at: Option<Instant>,
    reader: Option<Waker>,
}

impl Direction {
    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// One end of a wire with a delay and no limit.
struct End {
    world: Arc<World>,
    delay: Duration,
    inward: Arc<Mutex<Direction>>,
    outward: Arc<Mutex<Direction>>,
}

fn wire(world: &Arc<World>, delay: Duration) -> (End, End) {
    let (up, down) = (
        Arc::<Mutex<Direction>>::default(),
        Arc::<Mutex<Direction>>::default(),
    );
    let end = |inward: &Arc<Mutex<Direction>>, outward: &Arc<Mutex<Direction>>| End {
        world: world.clone(),
        delay,
        inward: inward.clone(),
        outward: outward.clone(),
    };
    (end(&down, &up), end(&up, &down))
}

impl AsyncRead for End {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inward = self.inward.lock().expect("one thread");
        let now = self.world.now();
        let next = match inward.under_way.front_mut() {
            Some((at, bytes)) if *at <= now => {
                let length = bytes.len().min(buf.remaining());
                buf.put_slice(&bytes[..length]);
                bytes.drain(..length);
                if bytes.is_empty() {
                    inward.under_way.pop_front();
                }
                return Poll::Ready(Ok(()));
            }
            Some((at, _)) => Some(*at),
            None => inward.closed_at,
        };
        match next {
            Some(at) if at <= now => return Poll::Ready(Ok(())),
            Some(at) => self.world.wake_at(at, cx.waker()),
            None => {}
        }
        inward.reader = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl AsyncWrite for End {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let mut outward = self.outward.lock().expect("one thread");
        outward
            .under_way
            .push_back((self.world.now() + self.delay, buf.to_vec()));
        outward.wake_reader();
        Poll::Ready(Ok(buf.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut outward = self.outward.lock().expect("one thread");
        outward.closed_at = Some(self.world.now() + self.delay);
        outward.wake_reader();
        Poll::Ready(Ok(()))
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let mut outward = self.outward.lock().expect("one thread");
        outward
            .closed_at
            .get_or_insert(self.world.now() + self.delay);
        outward.wake_reader();
    }
}

/// Loads a page and three resources over a wire of 40 ms; gives the hour of each answer, and of the end.
fn load() -> Vec<(String, Instant)> {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (near, far) = wire(&world, Duration::from_millis(40));
    let log = Arc::<Mutex<Vec<(String, Instant)>>>::default();
    let note = {
        let (log, world) = (log.clone(), world.clone());
        move |what: &str| {
            log.lock()
                .expect("one thread")
                .push((what.to_owned(), world.now()));
        }
    };
    let clock = runtime.clone();
    let service = move |request: Request<Body>| {
        let clock = clock.clone();
        async move {
            if request.uri().path() == "/slow" {
                clock
                    .sleep_until(clock.now() + Duration::from_millis(100))
                    .await;
            }
            Response::new(Body::full(vec![b'x'; 100_000]))
        }
    };
    let serving = server::serve(
        far,
        server::Builder::new(Version::V31),
        runtime.clone(),
        service,
    );
    let server_note = note.clone();
    runtime.spawn(Box::pin(async move {
        serving.await.expect("an orderly end");
        server_note("server ended");
    }));
    let builder = client::Builder::new(Version::V31);
    let (session, connection) = builder.handshake(near, runtime.clone());
    let client_note = note.clone();
    runtime.spawn(Box::pin(async move {
        connection.run().await.expect("an orderly end");
        client_note("client ended");
    }));
    runtime.spawn(Box::pin(async move {
        let get = |path: &str| {
            let request = Request::get(format!("http://example.org{path}"))
                .body(Body::empty())
                .expect("valid");
            session.request(request, Priority::HIGHEST)
        };
        let page = get("/").await.expect("a response");
        note("page head");
        assert_eq!(
            page.into_body()
                .collect()
                .await
                .expect("a body")
                .to_bytes()
                .len(),
            100_000
        );
        note("page");
        let (slow, quick) = (get("/slow"), get("/quick"));
        let quick = quick
            .await
            .expect("a response")
            .into_body()
            .collect()
            .await
            .expect("a body");
        assert_eq!(quick.to_bytes().len(), 100_000);
        note("quick");
        slow.await
            .expect("a response")
            .into_body()
            .collect()
            .await
            .expect("a body");
        note("slow");
        note(&format!(
            "ping {:?}",
            session.ping().await.expect("an answer")
        ));
    }));
    world.run();
    log.lock().expect("one thread").clone()
}

#[test]
fn a_page_loads_in_virtual_time_and_always_in_the_same() {
    let first = load();
    let at = |millis| Instant::from_millis(millis);
    let expected = [
        ("page head", at(80)),
        ("page", at(80)),
        ("quick", at(160)),
        ("slow", at(260)),
        ("ping 80ms", at(340)),
        ("server ended", at(380)),
        ("client ended", at(420)),
    ];
    let expected: Vec<_> = expected.map(|(what, at)| (what.to_owned(), at)).into();
    assert_eq!(first, expected);
    for _ in 0..20 {
        assert_eq!(load(), first);
    }
}
