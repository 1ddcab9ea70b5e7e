//! A whole run: threads, phases, and the measured process.
//!
//! ```text
//!  resolve -> connect all -> warm-up -> measure ................ -> gather
//!                            begin      start: CPU, bytes        end: CPU, bytes
//! ```
//!
//! Sessions decide by the clock which responses are counted, so threads need no message during the run.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use spdy_net::network::{Network, SystemNetwork};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::RunError;
use crate::plan::{Length, Plan};
use crate::process::{self, Processes, Sample};
use crate::report::{Report, Usage};
use crate::session::{Shared, Window};
use crate::tally::Tally;
use crate::traffic::Bytes;
use crate::worker::{ConnectReport, Worker, WorkerResult};

pub use crate::progress::{Phase, Progress};

/// Runs `plan` on its own threads, and measures `processes` meanwhile. When `stop` completes, the run ends early and
/// returns its results so far.
///
/// # Errors
///
/// [`RunError`]: nothing could be measured. Failed requests are part of the report.
pub async fn run(
    plan: Plan,
    processes: Option<&Processes>,
    live: &Arc<Progress>,
    stop: impl Future<Output = ()>,
) -> Result<Report, RunError> {
    let plan = Arc::new(plan);
    let addresses = resolve(&plan).await?;
    let (ready_in, mut ready) = mpsc::unbounded_channel();
    let (begin, window) = watch::channel(None);
    let (end_early, stopped) = watch::channel(false);
    let budget = Arc::new(AtomicU64::new(match plan.length {
        Length::Requests(requests) => requests,
        Length::Time(_) => 0,
    }));
    let threads = plan.threads.clamp(1, plan.sessions.max(1));
    let mut receivers = Vec::with_capacity(threads);
    for thread in 0..threads {
        let worker = Worker {
            sessions: (thread..plan.sessions).step_by(threads).collect(),
            ready: ready_in.clone(),
            window: window.clone(),
            stop: stopped.clone(),
        };
        let (plan, addresses) = (plan.clone(), addresses.clone());
        let (live, budget) = (live.clone(), budget.clone());
        // The sessions of a thread share state that is not `Send`, so it is created on the thread.
        let shared = || Shared {
            plan,
            addresses,
            progress: live,
            budget,
            traffic: Rc::default(),
            tally: RefCell::default(),
        };
        receivers.push(start(worker, shared)?);
    }
    drop(ready_in);
    tokio::pin!(stop);

    let mut connected = 0;
    let mut protocol = None;
    let mut failure = None;
    let mut stopped_early = false;
    for _ in 0..threads {
        let report: Option<ConnectReport> = tokio::select! {
            report = ready.recv() => report,
            () = &mut stop => { stopped_early = true; None }
        };
        let Some(report) = report else { break };
        connected += report.connected;
        protocol = protocol.or(report.protocol);
        failure = failure.or(report.failure);
    }
    let Some(protocol) = protocol else {
        let reason = match failure {
            Some(fault) => fault.reason,
            None => "the run was stopped".to_owned(),
        };
        let to = format!("{}:{}", plan.target.host(), plan.target.port());
        return Err(RunError::Connect { to, reason });
    };

    let now = Instant::now();
    let start = now + plan.warm_up;
    let window = Window {
        begin: now,
        start,
        end: match plan.length {
            Length::Time(time) => Some(start + time),
            Length::Requests(_) => None,
        },
    };
    let mut before = Consumption::now(processes)?;
    begin.send_replace(Some(window));
    let workers = join_workers(receivers, now);
    tokio::pin!(workers);
    let mut result = None;
    if window.start > window.begin && !stopped_early {
        live.enter(Phase::WarmUp);
        tokio::select! {
            () = tokio::time::sleep_until(start.into()) => {}
            () = &mut stop => stopped_early = true,
            all = &mut workers => result = Some(all),
        }
        before = Consumption::now(processes)?;
    }
    live.enter(Phase::Measuring);
    if result.is_none() && !stopped_early {
        let time = async {
            match window.end {
                Some(end) => tokio::time::sleep_until(end.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            () = &mut stop => stopped_early = true,
            all = &mut workers => result = Some(all),
        }
    }
    let after = Consumption::now(processes)?;
    let ended = Instant::now();
    end_early.send_replace(true);
    let all = match result {
        Some(all) => all,
        None => workers.as_mut().await,
    };
    let end = window.end.unwrap_or(ended).min(ended).min(all.ended);
    Ok(Report {
        protocol,
        sessions: connected,
        streams: plan.streams_of(protocol),
        elapsed: end.saturating_duration_since(start),
        stopped: stopped_early,
        usage: after.usage_since(&before),
        own_cpu: after.own_since(&before),
        ..Report::of(protocol, all.tally, all.bytes)
    })
}

async fn resolve(plan: &Plan) -> Result<Arc<[SocketAddr]>, RunError> {
    let host = plan.target.host();
    let failed = |source| RunError::Resolve {
        host: host.to_owned(),
        source,
    };
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = SystemNetwork.resolve(bare).await.map_err(failed)?;
    if found.is_empty() {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    let at = |address| SocketAddr::new(address, plan.target.port());
    Ok(found.into_iter().map(at).collect())
}

/// Starts a thread that runs `worker`.
fn start(
    worker: Worker,
    shared: impl FnOnce() -> Shared + Send + 'static,
) -> Result<oneshot::Receiver<WorkerResult>, RunError> {
    let (done, receiver) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(RunError::Thread)?;
    std::thread::Builder::new()
        .name("load".to_owned())
        .spawn(move || {
            let result = runtime.block_on(worker.run(shared()));
            // The receiver may be dropped.
            let _ = done.send(result);
        })
        .map_err(RunError::Thread)?;
    Ok(receiver)
}

/// Merges the results of all threads. A thread that panicked has already printed why.
async fn join_workers(
    receivers: Vec<oneshot::Receiver<WorkerResult>>,
    begun: Instant,
) -> WorkerResult {
    let mut all = WorkerResult {
        tally: Tally::default(),
        bytes: Bytes::default(),
        ended: begun,
    };
    for receiver in receivers {
        let result = receiver.await.expect("a thread of the load panicked");
        all.tally.add(result.tally);
        all.bytes = all.bytes.plus(result.bytes);
        all.ended = all.ended.max(result.ended);
    }
    all
}

/// What the measured process and this one have used so far.
struct Consumption {
    target: Option<Sample>,
    own: Option<Duration>,
}

impl Consumption {
    fn now(processes: Option<&Processes>) -> Result<Self, RunError> {
        Ok(Self {
            target: processes.map(Processes::sample).transpose()?,
            own: process::own_cpu(),
        })
    }

    fn usage_since(&self, before: &Self) -> Option<Usage> {
        let (last, before) = (self.target?, before.target?);
        let cpu = last.cpu.saturating_sub(before.cpu);
        Some(Usage { cpu, last })
    }

    fn own_since(&self, before: &Self) -> Option<Duration> {
        Some(self.own?.saturating_sub(before.own?))
    }
}
