//! Exports queued spans, a batch at a time. A failing collector costs only spans.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use spdy::runtime::SharedRuntime;
use spdy_net::latch::Latch;
use spdy_service::notice::Notices;
use tokio::time::Instant;

use super::otlp::{self, WallClockAnchor};
use super::otlp_client::{ExportError, OtlpClient};
use super::queue::{Counts, Queue};

/// How long the first span of a batch waits for others.
const DELAY: Duration = Duration::from_secs(1);
/// Delay before a batch is sent again for the first time; it doubles each time.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest delay, even if the collector requests a longer one.
const LAST_RETRY: Duration = Duration::from_secs(15);
/// How long a batch is sent again before it is dropped.
const RETRY_FOR: Duration = Duration::from_secs(60);

/// The task that sends spans.
#[derive(Debug)]
pub(super) struct ExportTask {
    pub(super) queue: Arc<Queue>,
    pub(super) collector: Arc<OtlpClient>,
    pub(super) resource: Vec<(String, String)>,
    pub(super) runtime: SharedRuntime,
    pub(super) stop: Latch,
    pub(super) notices: Notices,
    /// True if the collector did not accept the last batch.
    pub(super) is_collector_down: bool,
}

impl ExportTask {
    /// Sends until the stop, and then once more the queued spans.
    pub(super) async fn run(mut self) {
        while !self.stop.is_set() {
            tokio::select! {
                () = self.queue.wait_for_any() => {}
                () = self.stop.wait() => {}
            }
            tokio::select! {
                () = tokio::time::sleep(DELAY) => {}
                () = self.queue.wait_for_batch() => {}
                () = self.stop.wait() => {}
            }
            self.send_next().await;
        }
        while self.queue.len() > 0 {
            self.send_next().await;
        }
        self.collector.close().await;
    }

    async fn send_next(&mut self) {
        let spans = self.queue.next();
        if spans.is_empty() {
            return;
        }
        let wall_clock = WallClockAnchor {
            at: self.runtime.now(),
            was: SystemTime::now(),
        };
        let message = otlp::request(&self.resource, &spans, wall_clock);
        let len = spans.len();
        drop(spans);
        let counts = &self.queue.clone().counts;
        match self.deliver(message).await {
            Ok((rejected, reason)) => {
                let rejected = rejected.min(len);
                Counts::add(&counts.sent, len - rejected);
                Counts::add(&counts.refused, rejected);
                if rejected > 0 {
                    tracing::debug!(rejected, reason, "the collector rejected some spans");
                }
            }
            Err(failure) if failure.is_transient() => Counts::add(&counts.unsent, len),
            Err(_) => Counts::add(&counts.refused, len),
        }
    }

    /// Sends `message`, and again while that may help.
    async fn deliver(&mut self, message: Bytes) -> Result<(usize, String), ExportError> {
        let until = Instant::now() + RETRY_FOR;
        let mut rest = FIRST_RETRY;
        loop {
            let failure = match self.collector.send(message.clone()).await {
                Ok(answer) => {
                    self.note_recovered();
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            self.warn_down(&failure);
            let retry_after = failure.retry_after().unwrap_or_default();
            let pause = rest.max(retry_after).min(LAST_RETRY);
            rest = (rest * 2).min(LAST_RETRY);
            if !failure.is_transient() || self.stop.is_set() || Instant::now() + pause > until {
                return Err(failure);
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.wait() => {}
            }
        }
    }

    fn warn_down(&mut self, failure: &ExportError) {
        if !std::mem::replace(&mut self.is_collector_down, true) {
            let uri = self.collector.uri();
            self.notices.error(
                format_args!("the collector at {uri} does not accept spans"),
                format_args!(": {failure}"),
            );
        }
    }

    fn note_recovered(&mut self) {
        if std::mem::take(&mut self.is_collector_down) {
            let uri = self.collector.uri();
            self.notices
                .info(format_args!("the collector at {uri} accepts spans again"));
        }
    }
}
