//! One thread with its own runtime, and its share of the sessions as tasks.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use futures_util::stream::{self, StreamExt};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinSet, LocalSet};

use crate::fault::{Fault, FaultKind};
use crate::session::{self, OpenConnection, Session, Shared, Window};
use crate::tally::Tally;
use crate::traffic::{Bytes, Traffic};

/// Concurrent handshakes: a server's queue of new connections is limited.
const MAX_HANDSHAKES: usize = 64;

/// The work of a thread.
pub(crate) struct Worker {
    /// The numbers of its sessions.
    pub(crate) sessions: Vec<usize>,
    /// Results of its connections.
    pub(crate) ready: mpsc::UnboundedSender<ConnectReport>,
    /// Start of the load.
    pub(crate) window: watch::Receiver<Option<Window>>,
    /// True if the run ends early.
    pub(crate) stop: watch::Receiver<bool>,
}

/// Result of connecting.
pub(crate) struct ConnectReport {
    pub(crate) connected: usize,
    pub(crate) protocol: Option<spdy_net::protocol::Protocol>,
    pub(crate) failure: Option<Fault>,
}

/// Results of a thread.
pub(crate) struct WorkerResult {
    pub(crate) tally: Tally,
    pub(crate) bytes: Bytes,
    /// When the last of its sessions ended, or was stopped.
    pub(crate) ended: Instant,
}

impl Worker {
    /// Runs to the end of the load.
    pub(crate) async fn run(mut self, shared: Shared) -> WorkerResult {
        let shared = Rc::new(shared);
        let traffic = shared.traffic.clone();
        let tasks = LocalSet::new();
        let (before, after, ended) = tasks.run_until(self.run_sessions(&shared, &traffic)).await;
        drop(tasks); // and the tasks that still wait for a response
        let tally = RefCell::take(&shared.tally);
        WorkerResult {
            tally,
            bytes: after.since(before),
            ended,
        }
    }

    async fn run_sessions(
        &mut self,
        shared: &Rc<Shared>,
        traffic: &Traffic,
    ) -> (Bytes, Bytes, Instant) {
        let connected = self.connect(shared).await;
        let window = match self.window.wait_for(Option::is_some).await {
            Ok(window) => *window,
            Err(_) => None, // the run was stopped
        };
        let Some(window) = window else {
            return (Bytes::default(), Bytes::default(), Instant::now());
        };
        let mut before = traffic.read();
        let mut sessions = JoinSet::new();
        for (number, connected) in connected {
            match Session::new(shared.clone(), number, connected, window) {
                Ok(session) => drop(sessions.spawn_local(session.run())),
                Err(error) => {
                    let fault = Fault::new(FaultKind::Connect, error);
                    shared.tally.borrow_mut().fault(fault);
                }
            }
        }
        let ended = async { while sessions.join_next().await.is_some() {} };
        let stop = self.stop.wait_for(|stop| *stop);
        tokio::pin!(ended, stop);
        if window.start > window.begin {
            let over = tokio::select! {
                () = tokio::time::sleep_until(window.start.into()) => false,
                () = &mut ended => true,
                _ = &mut stop => true,
            };
            before = traffic.read();
            if over {
                return (before, before, Instant::now());
            }
        }
        let time = async {
            match window.end {
                Some(end) => tokio::time::sleep_until(end.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = ended => {}
            _ = stop => {}
            () = time => {}
        }
        (before, traffic.read(), Instant::now())
    }

    /// Sets up every session, and reports the outcome.
    async fn connect(&self, shared: &Shared) -> Vec<(usize, OpenConnection)> {
        let mut failure = None;
        let mut connected = Vec::with_capacity(self.sessions.len());
        let attempts = stream::iter(self.sessions.iter().copied())
            .map(|number| async move { (number, session::connect(shared).await) });
        let mut attempts = attempts.buffer_unordered(MAX_HANDSHAKES);
        while let Some((number, attempt)) = attempts.next().await {
            match attempt {
                Ok(stands) => {
                    shared.progress.connected();
                    connected.push((number, stands));
                }
                Err(fault) => {
                    failure.get_or_insert_with(|| fault.clone());
                    shared.tally.borrow_mut().fault(fault);
                }
            }
        }
        // The receiver may be dropped.
        let _ = self.ready.send(ConnectReport {
            connected: connected.len(),
            protocol: connected.first().map(|(_, stands)| stands.protocol),
            failure,
        });
        connected
    }
}
