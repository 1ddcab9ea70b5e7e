//! An executor of a hundred lines in a time of its own, and a wire with a delay: what a test needs to run
//! client and server without tokio's runtime and without waiting.

#![allow(
    dead_code,
    reason = "`memory.rs` and `soak/` include this file and use parts of it"
)]

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use spdy::Instant;
use spdy::runtime::{BoxFuture, Runtime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The clock, the timers and the tasks that are ready.
#[derive(Default)]
pub(crate) struct World {
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
    pub(crate) fn now(&self) -> Instant {
        *self.now.lock().expect("one thread")
    }

    /// Runs until nothing is left to do and no timer to wait for.
    pub(crate) fn run(&self) {
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

/// The world as the library's runtime.
pub(crate) struct VirtualTime(pub(crate) Arc<World>);

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

/// One direction of a wire: the bytes in flight, with the time of their arrival.
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
pub(crate) struct End {
    world: Arc<World>,
    delay: Duration,
    inward: Arc<Mutex<Direction>>,
    outward: Arc<Mutex<Direction>>,
}

/// A wire with both ends.
pub(crate) fn wire(world: &Arc<World>, delay: Duration) -> (End, End) {
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
