//! The state that a session's driver and handles share: the machine, and the tasks that wait for its streams.
//!
//! ```text
//!  Session, Stream, Body, Responder ...      Connection (session/driver.rs)
//!        |  commands                               |  bytes, time
//!        v                                         v
//!  +----------------------- Shared: one mutex -----------------------+
//!  |  the session machine  --- events --->  entries, one per stream  |
//!  +-----------------------------------------------------------------+
//! ```
//!
//! Commands act on the machine at once, under the lock, and wake the driver if it sleeps; there is no channel. Only the driver
//! takes events (`session/dispatch.rs`). The lock is never held across an await, and wakers are called after it is released.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use slab::Slab;
use spdy_frame::version::Version;
use spdy_http::push::PushForm;
use spdy_session::config::{Config, Role};
use spdy_session::session::Session as Machine;
use tokio::sync::oneshot;
use tracing::Span;

use crate::error::Error;
use crate::metrics::{Exchanges, Metrics, SessionSample, SessionSource};
use crate::runtime::SharedRuntime;
use crate::session::push_limits::{PushLimits, UnclaimedPushes};
use crate::session::run_watch::{RUN_WITHIN, RunWatch};
use crate::session::state::State;
use crate::trace;

/// One session, shared by all of its handles.
pub(crate) struct Shared {
    state: Mutex<State>,
    pub(crate) runtime: SharedRuntime,
    pub(crate) version: Version,
    pub(crate) role: Role,
    /// True if trailers of bodies are sent.
    pub(crate) send_trailers: bool,
    /// How a server's pushes are encoded.
    pub(crate) push_form: PushForm,
    pub(crate) span: Span,
    /// True if requests claim pushes.
    pub(crate) claims_pushes: bool,
    pub(crate) run_watch: RunWatch,
}

/// Options of the builders that are not in the machine's configuration.
#[derive(Clone, Debug, Default)]
pub(crate) struct SessionOptions {
    /// True if trailers of bodies are sent.
    pub(crate) send_trailers: bool,
    /// How a server's pushes are encoded.
    pub(crate) push_form: PushForm,
    /// True if streams that the peer opens are accepted.
    pub(crate) accepts_streams: bool,
    /// The metrics in which the session is counted.
    pub(crate) metrics: Option<Metrics>,
    /// Limits of a client's unclaimed pushes, if requests claim pushes.
    pub(crate) claims: Option<PushLimits>,
}

impl SessionSource for Shared {
    fn sample(&self) -> SessionSample {
        self.look(|state| SessionSample {
            role: self.role,
            version: self.version,
            open_streams: state.active_streams(),
            stats: state.machine.stats(),
            exchanges: state.exchanges,
        })
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("version", &self.version)
            .field("role", &self.role)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// Creates a session that has not begun.
    pub(crate) fn new(
        config: Config,
        runtime: SharedRuntime,
        choices: SessionOptions,
    ) -> Arc<Self> {
        let (version, role) = (config.version, config.role);
        let state = State {
            machine: Machine::new(config, runtime.now()),
            entries: Slab::new(),
            by_id: HashMap::default(),
            waiting: BTreeMap::new(),
            next_ticket: 0,
            incoming: VecDeque::new(),
            incoming_waker: None,
            accepts_streams: choices.accepts_streams,
            peer_uses_priorities: false,
            claims: choices.claims.map(UnclaimedPushes::new),
            driver: None,
            owners: 0,
            draining: false,
            closing: false,
            ended: None,
            ended_wakers: Slab::new(),
            io_error: None,
            pings: Vec::new(),
            exchanges: Exchanges::default(),
            meter: None,
        };
        let shared = Arc::new(Self {
            state: Mutex::new(state),
            runtime,
            version,
            role,
            send_trailers: choices.send_trailers,
            push_form: choices.push_form,
            claims_pushes: choices.claims.is_some(),
            run_watch: RunWatch::default(),
            span: trace::session(role, version),
        });
        if let Some(metrics) = choices.metrics {
            let session: Weak<Self> = Arc::downgrade(&shared);
            let meter = metrics.register(session, role, version);
            shared.look(|state| state.meter = Some(meter));
        }
        shared
    }

    /// Sends a PING and returns its round trip time.
    pub(crate) async fn ping(self: &Arc<Self>) -> Result<Duration, Error> {
        self.watch_run();
        let (answer, answered) = oneshot::channel();
        let now = self.runtime.now();
        self.command(|state| {
            if state.ended.is_none() {
                state.machine.ping(now);
                // Some peers never answer: pings that are no longer awaited are removed.
                state.pings.retain(|ping| !ping.is_closed());
                state.pings.push(answer);
            }
        });
        answered
            .await
            .map_err(|_| self.look(|state| state.refusal()))
    }

    /// Sends GOAWAY(INTERNAL_ERROR) and ends the session.
    pub(crate) fn abort(&self) {
        let now = self.runtime.now();
        self.command(|state| state.machine.abort(now));
    }

    /// Why the session was lost.
    pub(crate) fn error(&self) -> Option<Error> {
        self.look(|state| state.ended.clone().and_then(Result::err))
    }

    /// To be called when a task waits for the connection. If the connection is not run in time, the session ends.
    pub(crate) fn watch_run(self: &Arc<Self>) {
        if !self.run_watch.start() {
            return;
        }
        let (shared, runtime) = (Arc::downgrade(self), self.runtime.clone());
        let deadline = runtime.sleep_until(runtime.now() + RUN_WITHIN);
        runtime.spawn(Box::pin(async move {
            deadline.await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            if shared.run_watch.expire() {
                let error = Error::ConnectionNotRun { waited: RUN_WITHIN };
                let mut woken = Vec::new();
                shared.look(|state| state.end(Err(error), &mut woken));
                woken.into_iter().for_each(Waker::wake);
            }
        }));
    }

    /// The driver was dropped: nothing more is sent or received.
    pub(crate) fn handle_driver_dropped(&self) {
        let (stats, error) = self.look(|state| {
            let stats = state.machine.stats();
            if let Some(meter) = &mut state.meter {
                meter.unregister(&stats, &state.exchanges);
            }
            (stats, state.ended.clone().and_then(Result::err))
        });
        trace::session_ended(&self.span, &stats, error.as_ref());
    }

    /// Runs `act` on the state, and wakes the driver afterwards if it sleeps.
    pub(crate) fn command<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        self.command_if(|state| (act(state), true))
    }

    /// Runs `act` on the state; wakes the driver if `act` returns that there is work for it.
    pub(crate) fn command_if<R>(&self, act: impl FnOnce(&mut State) -> (R, bool)) -> R {
        let (result, driver) = {
            let mut state = self.state.lock();
            let (result, work) = act(&mut state);
            (result, if work { state.driver.take() } else { None })
        };
        if let Some(driver) = driver {
            driver.wake();
        }
        result
    }

    /// Resolves when the session has ended.
    pub(crate) fn ended(self: &Arc<Self>) -> SessionEnd<'_> {
        SessionEnd {
            shared: self,
            key: None,
        }
    }

    /// Runs `look` on the state, without waking any task.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut self.state.lock())
    }
}

/// Waits for the end of a session; dropping it removes its waker.
pub(crate) struct SessionEnd<'a> {
    shared: &'a Arc<Shared>,
    /// Its key in `ended_wakers`.
    key: Option<usize>,
}

impl Future for SessionEnd<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut old = None;
        let (shared, mut key) = (self.shared, self.key);
        shared.watch_run();
        let poll = shared.look(|state| {
            if state.ended.is_some() {
                return Poll::Ready(());
            }
            match key {
                Some(key) => {
                    let waker = &mut state.ended_wakers[key];
                    old = Some(std::mem::replace(waker, cx.waker().clone()));
                }
                None => key = Some(state.ended_wakers.insert(cx.waker().clone())),
            }
            Poll::Pending
        });
        self.key = key;
        poll
    }
}

impl Drop for SessionEnd<'_> {
    fn drop(&mut self) {
        let waker = self.key.map(|key| {
            // When the session ends, all wakers are removed.
            self.shared.look(|state| state.ended_wakers.try_remove(key))
        });
        drop(waker); // after the lock is released
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::{BoxFuture, Runtime};

    /// A clock that does not advance.
    struct FrozenClock;

    impl Runtime for FrozenClock {
        fn now(&self) -> spdy_clock::Instant {
            spdy_clock::Instant::ZERO
        }

        fn sleep_until(&self, _: spdy_clock::Instant) -> BoxFuture<()> {
            Box::pin(std::future::pending())
        }

        fn spawn(&self, _: BoxFuture<()>) {}
    }

    fn session() -> Arc<Shared> {
        let config = Config::new(Role::Client, Version::V31);
        Shared::new(
            config,
            SharedRuntime::new(FrozenClock),
            SessionOptions::default(),
        )
    }

    /// Regression: every wait for the end left a waker, and with it its task, until the session was over.
    #[test]
    fn a_dropped_waiter_leaves_no_waker() {
        let shared = session();
        let cx = &mut Context::from_waker(Waker::noop());
        for _ in 0..10 {
            let mut ended = std::pin::pin!(shared.ended());
            let mut ping = std::pin::pin!(shared.ping());
            for _ in 0..3 {
                assert!(ended.as_mut().poll(cx).is_pending());
                assert!(ping.as_mut().poll(cx).is_pending());
            }
            shared.look(|state| {
                assert_eq!((state.ended_wakers.len(), state.pings.len()), (1, 1));
            });
        }
        let mut ended = std::pin::pin!(shared.ended());
        assert!(ended.as_mut().poll(cx).is_pending());
        let mut woken = Vec::new();
        shared.look(|state| state.end(Ok(()), &mut woken));
        assert_eq!(woken.len(), 1);
        assert!(ended.as_mut().poll(cx).is_ready());
    }
}
