//! How `spdy accelerate` ends: work in progress is completed, each part within a timeout.
//!
//! ```text
//! stop ─▶ client connections ─▶ access log ─▶ origin connections ─▶ spans ─▶ disk writes  ─▶ shared tier          ─▶ system resolver
//!         drain_timeout         5 s           2 s for each pool     5 s      DISK_TIMEOUT    1 s, then its mark 1 s  FINAL_TIMEOUT
//! ```
//!
//! Work that is cut off has the same effect as after a kill: responses are fetched again, and purges are applied again. If the disk
//! hangs, objects that a client's request had invalidated are present again.

use std::time::Duration;

use spdy_proxy::proxy::Proxy;
use tokio::runtime::Runtime;

use crate::shared_tier::SharedTier;
use crate::telemetry::Telemetry;

/// Timeout for all that the disk has not written yet. An object is stored when it survives a power failure, and tens of thousands may
/// wait for that.
const DISK_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for work whose result is no longer needed.
const FINAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Closes everything but the connections of clients: origins, telemetry, disk, shared tier.
pub(crate) async fn close(proxy: &Proxy, shared: Option<SharedTier>, telemetry: Option<Telemetry>) {
    proxy.origins.close().await;
    if let Some(telemetry) = telemetry {
        telemetry.end().await;
    }
    if let Some(disk) = proxy.cache.disk() {
        let settled = tokio::time::timeout(DISK_TIMEOUT, disk.flush_removals()).await;
        // With or without the timeout: later writes are too late, and dropping the disk must not wait for them.
        disk.discard_queue();
        if settled.is_err() {
            tracing::warn!(
                "the disk cache is slow: responses that are not written yet are dropped"
            );
            // Removals were queued behind writes.
            let _ = tokio::time::timeout(FINAL_TIMEOUT, disk.flush_removals()).await;
        }
    }
    if let Some(shared) = shared {
        shared.end(proxy).await;
    }
}

/// Runs `work`, then shuts the runtime down without waiting long for its threads.
pub(crate) fn run<T>(runtime: Runtime, work: impl Future<Output = T>) -> T {
    let done = runtime.block_on(work);
    // The system resolver runs on a thread and may take a minute to fail.
    runtime.shutdown_timeout(FINAL_TIMEOUT);
    done
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::thread;

    use spdy_testkit::wait::until;
    use tokio::sync::oneshot;

    use super::*;

    #[test]
    fn shutdown_does_not_wait_for_a_blocked_thread() {
        let (_system, answer) = mpsc::channel::<()>();
        let ended = thread::spawn(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().build();
            let main_task = async {
                let (begun, has_begun) = oneshot::channel();
                tokio::task::spawn_blocking(move || {
                    let _ = begun.send(());
                    answer.recv()
                });
                has_begun.await
            };
            run(runtime.expect("create a runtime"), main_task)
        });
        until("the thread has ended", || ended.is_finished());
    }
}
