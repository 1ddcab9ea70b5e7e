//! The progress bar of `spdy bench`.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use spdy_load::plan::{Length, Plan};
use spdy_load::run::{Phase, Progress};

use crate::output::Printer;

/// Interval between two updates of the bar.
const TICK: Duration = Duration::from_millis(200);

/// Draws the progress of a run and its current rate.
pub(crate) struct ProgressPrinter {
    bar: ProgressBar,
    live: Arc<Progress>,
    length: Length,
    sessions: u64,
}

impl ProgressPrinter {
    pub(crate) fn new(printer: &Printer, plan: &Plan, live: Arc<Progress>) -> Self {
        let steps = match plan.length {
            Length::Time(time) => (plan.warm_up + time).as_millis(),
            Length::Requests(requests) => u128::from(requests),
        };
        Self {
            bar: printer.load_bar(u64::try_from(steps).unwrap_or(u64::MAX)),
            live,
            length: plan.length,
            sessions: plan.sessions as u64,
        }
    }

    /// Draws the bar until the result is dropped.
    pub(crate) async fn watch(&mut self) -> Infallible {
        let mut ticks = tokio::time::interval(TICK);
        let mut begun = None;
        let mut last = (Instant::now(), 0);
        loop {
            ticks.tick().await;
            let now = Instant::now();
            let answered = self.live.answered();
            let rate = (answered - last.1) as f64 / (now - last.0).as_secs_f64();
            last = (now, answered);
            match self.live.phase() {
                Phase::Connecting => {
                    let connected = self.live.sessions();
                    let text = format!("connecting, {connected} of {}", self.sessions);
                    self.bar.set_message(text);
                    continue;
                }
                Phase::WarmUp => self.bar.set_message(format!("warming up, {rate:.0}/s")),
                Phase::Measuring => {
                    let mut text = format!("{rate:.0}/s");
                    if self.live.failed() > 0 {
                        let _ = write!(text, ", {} failed", self.live.failed());
                    }
                    self.bar.set_message(text);
                }
            }
            let since = now - *begun.get_or_insert(now);
            self.bar.set_position(match self.length {
                Length::Time(_) => u64::try_from(since.as_millis()).unwrap_or(u64::MAX),
                Length::Requests(_) => answered,
            });
        }
    }
}

impl Drop for ProgressPrinter {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
