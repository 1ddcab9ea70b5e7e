//! The sessions of a run, over loopback or in virtual time.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use spdy::{Metrics, SharedRuntime, Version, client, server};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::exchange::{respond, run_request};
use crate::random::TestRandom;
use crate::rough::Rough;
use crate::tally::Tally;
use crate::virtual_world::{self, World, wire};

/// Makes a connection: the near end, and the far one.
pub(crate) trait Dial: Send + Sync + 'static {
    type Io: AsyncRead + AsyncWrite + Unpin + Send + 'static;

    fn dial(&self) -> impl Future<Output = (Self::Io, Self::Io)> + Send;
}

pub(crate) struct Loopback(pub(crate) tokio::sync::Mutex<tokio::net::TcpListener>);

impl Dial for Loopback {
    type Io = tokio::net::TcpStream;

    async fn dial(&self) -> (Self::Io, Self::Io) {
        let listener = self.0.lock().await;
        let address = listener.local_addr().expect("the listener is bound");
        let near = tokio::net::TcpStream::connect(address);
        let (near, far) = tokio::join!(near, listener.accept());
        let (near, (far, _)) = (near.expect("loopback"), far.expect("loopback"));
        near.set_nodelay(true).expect("a socket");
        far.set_nodelay(true).expect("a socket");
        (near, far)
    }
}

pub(crate) struct Wire(pub(crate) Arc<World>);

impl Dial for Wire {
    type Io = virtual_world::End;

    async fn dial(&self) -> (Self::Io, Self::Io) {
        wire(&self.0, Duration::from_millis(5))
    }
}

/// The state that all sessions of a run share.
pub(crate) struct Run<D> {
    pub(crate) dial: D,
    pub(crate) runtime: SharedRuntime,
    pub(crate) metrics: Metrics,
    pub(crate) tally: Arc<Tally>,
    pub(crate) requests: u64,
}

impl<D: Dial> Run<D> {
    /// One session after the other, until all requests are made.
    pub(crate) async fn worker(self: Arc<Self>, mut random: TestRandom) {
        while self.tally.started.load(Ordering::Relaxed) < self.requests {
            let version = Version::ALL[random.below(3) as usize];
            self.session(version, random.fork()).await;
        }
    }

    pub(crate) fn rough<T>(
        &self,
        io: T,
        random: &mut TestRandom,
        cut: &Arc<AtomicBool>,
    ) -> Rough<T> {
        let bytes_until_cut = match random.one_in(8) {
            true => random.below(2_000_000),
            false => u64::MAX,
        };
        Rough {
            io,
            runtime: self.runtime.clone(),
            random: random.fork(),
            bytes_until_cut,
            cut: cut.clone(),
            delay: None,
        }
    }

    pub(crate) async fn session(&self, version: Version, mut random: TestRandom) {
        let (runtime, tally) = (&self.runtime, &self.tally);
        Tally::count(&tally.sessions);
        let (near, far) = self.dial.dial().await;
        let cut = Arc::<AtomicBool>::default();
        let far = self.rough(far, &mut random, &cut);
        let near = self.rough(near, &mut random, &cut);
        let service = {
            let (runtime, tally, mut random) = (runtime.clone(), tally.clone(), random.fork());
            move |request| respond(request, runtime.clone(), random.fork(), tally.clone())
        };
        let builder = server::Builder::new(version).metrics(&self.metrics);
        let server = builder.serve(far, runtime.clone(), service);
        runtime.spawn(Box::pin(server.map(drop)));
        let builder = client::Builder::new(version)
            .metrics(&self.metrics)
            .initial_window_bytes(65_536)
            .session_window_bytes(262_144);
        let (session, connection) = builder.handshake(near, runtime.clone());
        connection.spawn();
        let mut exchanges = FuturesUnordered::new();
        let (mut remaining, max_concurrent) = (20 + random.below(400), 1 + random.below(20));
        loop {
            while remaining > 0
                && (exchanges.len() as u64) < max_concurrent
                && !session.is_closing()
            {
                if Tally::count(&tally.started) > self.requests {
                    tally.started.fetch_sub(1, Ordering::Relaxed);
                    remaining = 0;
                    break;
                }
                remaining -= 1;
                exchanges.push(run_request(&session, runtime, random.fork(), &cut, tally));
            }
            if exchanges.next().await.is_none() {
                break;
            }
        }
        drop(exchanges);
        // It ends with its last stream, so that one that is left over would hold it for ever.
        session.shutdown();
        session.closed().await;
    }

    /// True if no session and no stream is open, on either side.
    pub(crate) fn is_over(&self) -> bool {
        let snapshot = self.metrics.snapshot();
        [snapshot.client, snapshot.server].iter().all(|side| {
            side.streams_open == 0 && side.sessions.iter().all(|(_, sessions)| sessions.open == 0)
        })
    }

    /// Fails unless all went as it must.
    pub(crate) fn judge(&self, seed: u64) {
        let faults = self
            .tally
            .faults
            .lock()
            .expect("no code panics while holding this lock");
        let examples: Vec<_> = faults.iter().take(5).collect();
        assert!(
            faults.is_empty(),
            "seed {seed}: {} faults, such as {examples:#?}",
            faults.len()
        );
        let started = self.tally.started.load(Ordering::Relaxed);
        assert_eq!(started, self.requests, "seed {seed}");
        let completed = self.tally.completed.load(Ordering::Relaxed);
        assert!(completed * 2 > started, "seed {seed}: {}", self.tally);
        let limits = self.metrics.snapshot().server.stats.limits;
        assert!(limits.is_empty(), "seed {seed}: {limits}");
        assert!(self.is_over(), "seed {seed}: {:?}", self.metrics.snapshot());
    }
}
