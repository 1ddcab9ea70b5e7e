//! The task that keeps in touch: it asks every part whether it answers, tells purges, hears those of others.

use std::sync::Arc;

use futures_util::future::join_all;
use tokio::time::MissedTickBehavior;

use crate::inner::Inner;

/// Runs until it is ended.
pub(crate) async fn run(inner: Arc<Inner>) {
    let mut rounds = tokio::time::interval(inner.config.poll);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = rounds.tick() => probe(&inner).await,
            () = inner.wake.notified() => {}
        }
        let part = inner.log_part();
        if inner.answers(part) {
            let outcome = inner.talk().await;
            inner.asked(part, &outcome);
        }
        inner.forget_again();
        inner.begun.send_replace(true);
    }
}

async fn probe(inner: &Inner) {
    let probes = inner.names.probes().map(|(part, name)| async move {
        let outcome = inner.store.probe(name, inner.config.timeout).await;
        (part, outcome)
    });
    let outcomes = join_all(probes).await;
    inner.probed(&outcomes);
}
