//! The task that keeps in touch: it asks every part whether it answers, tells purges, hears those of others.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep_until};

use crate::inner::Inner;
use crate::parts::PARTS;

/// Between the first round and the second, if the cluster was not all there; then twice as long each time, up to the poll.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Runs until it is ended.
pub(crate) async fn run(inner: Arc<Inner>) {
    let poll = inner.config.poll;
    let (mut next, mut pause) = (Instant::now(), FIRST_PAUSE.min(poll));
    loop {
        tokio::select! {
            () = sleep_until(next) => {
                next = Instant::now() + pause;
                pause = (pause * 2).min(poll);
                probe(&inner).await;
            }
            () = inner.wake.notified() => {}
        }
        let part = inner.log_part();
        if inner.answers(part) {
            let outcome = inner.talk().await;
            inner.asked(part, &outcome);
        }
        if pause < poll && inner.answering() == PARTS {
            pause = poll;
            next = Instant::now() + poll;
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
