//! The background task: probes every part, writes purges, and reads those of other caches.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until};

use crate::client_renewal::ClientRenewal;
use crate::cluster_store::Failure;
use crate::part_health::PARTS;
use crate::tier_state::TierState;

/// Delay between the first and the second round, if the cluster was incomplete; doubled each time, up to the poll interval.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Limit of one round of writing and reading purges, in answer timeouts: a log that is missing at every read would never end.
const MAX_SYNC_TIMEOUTS: u32 = 4;

/// Runs until it is aborted.
pub(crate) async fn run(inner: Arc<TierState>) {
    let poll = inner.config.poll;
    let (mut next, mut pause) = (Instant::now(), FIRST_PAUSE.min(poll));
    let mut renewal = ClientRenewal::new();
    loop {
        tokio::select! {
            () = sleep_until(next) => {
                next = Instant::now() + pause;
                pause = (pause * 2).min(poll);
                let was_answered = probe(&inner).await;
                if renewal.probed(Instant::now().into_std(), was_answered) {
                    tracing::info!("no node responds: connecting to the shared tier with a new client");
                    inner.store.renew();
                }
            }
            () = inner.wake.notified() => {}
        }
        let part = inner.log_part();
        if inner.answers(part) {
            // Entries that were already read or written are not repeated.
            let bound = inner.store.background_timeout() * MAX_SYNC_TIMEOUTS;
            let late = |_| Err(Failure::Timeout(bound));
            let before = inner.purge_version();
            match tokio::time::timeout(bound, inner.sync_log()).await {
                // There were many entries: the rest is read in another round.
                Err(_) if inner.purge_version() != before => inner.wake.notify_one(),
                outcome => inner.record_request(part, &outcome.unwrap_or_else(late)),
            }
        }
        if pause < poll && inner.available_parts() == PARTS {
            pause = poll;
            next = Instant::now() + poll;
        }
        inner.requeue_deletes();
        inner.started.send_replace(true);
    }
}

/// Returns true if any part answered.
async fn probe(inner: &TierState) -> bool {
    let probes = inner.names.probes().map(|(part, name)| async move {
        let outcome = inner.store.probe(name, inner.config.timeout).await;
        (part, outcome)
    });
    let outcomes = join_all(probes).await;
    inner.record_probes(&outcomes);
    let mut failures = outcomes.iter().map(|(_, outcome)| outcome.as_ref().err());
    failures.any(|failure| failure.is_none_or(Failure::was_answered))
}
