//! Runs all cells, on several links at a time.
//!
//! ```text
//!   cells, the longest first ─┬─ lane 1: its own link, one run after the other ──────┐
//!                             ├─ lane 2                                               ├─► reported when done
//!                             └─ ..                                                   ┘
//! ```
//!
//! A link spends most of a run waiting, so lanes share a core. Too many lanes delay each other, which their links measure. An invalid
//! run is repeated with the same seed, after the others of its cell.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::calibrate::compare::CellResult;
use crate::calibrate::error::CalibrateError;
use crate::calibrate::run_link::{RunLink, RunResult};
use crate::calibrate::workload::Workload;

/// Maximum number of repetitions of an invalid run.
pub const MAX_RETRIES: u32 = 10;
/// Pause before the first repetition. Each further pause is longer by as much, because the machine may be busy for some time.
pub const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Options of a comparison.
#[derive(Clone, Debug)]
pub struct CalibrationRunner {
    /// Valid runs of a cell without loss and jitter, at least 1.
    pub runs: u32,
    /// Valid runs of a [lossy](Workload::is_lossy) cell, at least 1.
    pub lossy_runs: u32,
    /// Seed of the first run; each further run adds 1.
    pub seed: u64,
    /// Number of links, at least 1.
    pub links: usize,
}

/// Progress of a comparison.
#[derive(Debug)]
pub enum Event<S> {
    /// A subject was loaded in virtual time; this comes before all loads in real time.
    Predicted,
    /// Real time begins; the duration of all runs in virtual time.
    Began(Duration),
    /// A run is valid or was abandoned; the duration in virtual time.
    Ran(Duration),
    /// A cell is done; its index among the requested ones.
    Done(usize, Box<CellResult<S>>),
}

/// The durations of a cell in virtual time, for each of its seeds.
#[derive(Clone, Debug)]
struct PlannedCell<S> {
    number: usize,
    subject: S,
    /// A cell without loss has one for all seeds.
    virtual_times: Vec<Duration>,
    runs: u32,
}

impl<S> PlannedCell<S> {
    fn expected(&self, run: u32) -> Duration {
        let times = &self.virtual_times;
        times[(run as usize).min(times.len() - 1)]
    }

    fn total(&self) -> Duration {
        (0..self.runs).map(|run| self.expected(run)).sum()
    }
}

/// One attempt at a run.
#[derive(Clone, Copy, Debug)]
struct RunAttempt {
    /// Pause before it.
    pause: Duration,
    seed: u64,
    /// Its duration in virtual time.
    expected: Duration,
}

impl CalibrationRunner {
    const fn seed_of(&self, run: u32) -> u64 {
        self.seed.wrapping_add(run as u64)
    }

    fn plan<S: Workload>(
        &self,
        subjects: &[S],
        mut on_event: impl FnMut(&Event<S>),
    ) -> Result<Vec<PlannedCell<S>>, CalibrateError> {
        let mut plan = |(number, subject): (usize, &S)| -> Result<PlannedCell<S>, CalibrateError> {
            let lossy = subject.is_lossy();
            let runs = if lossy { self.lossy_runs } else { self.runs };
            let virtual_runs = if lossy { runs } else { 1 };
            let times = (0..virtual_runs).map(|run| subject.run_virtual(self.seed_of(run)));
            let virtual_times = times.collect::<Result<_, _>>().map_err(|source| {
                let what = subject.to_string();
                CalibrateError::Virtual { what, source }
            })?;
            on_event(&Event::Predicted);
            Ok(PlannedCell {
                number,
                subject: subject.clone(),
                virtual_times,
                runs,
            })
        };
        let mut plans: Vec<PlannedCell<S>> = subjects
            .iter()
            .enumerate()
            .map(&mut plan)
            .collect::<Result<_, _>>()?;
        plans.sort_by_key(|plan| std::cmp::Reverse(plan.total()));
        Ok(plans)
    }

    /// Compares `subjects`. `on_event` receives each event in order. The results are in the order of `subjects`.
    ///
    /// # Errors
    ///
    /// The network in real time is not available, a run fails in virtual time, or a link fails. Invalid runs, and runs that fail in
    /// real time, are no errors, even if a subject has no valid run.
    pub fn run<S: Workload>(
        &self,
        subjects: &[S],
        mut on_event: impl FnMut(&Event<S>),
    ) -> Result<Vec<CellResult<S>>, CalibrateError> {
        let plans = self.plan(subjects, &mut on_event)?;
        let all = plans.iter().map(PlannedCell::total).sum();
        on_event(&Event::Began(all));
        // Created one after the other: a machine without namespaces fails before anything runs.
        let lanes = (0..self.links.min(plans.len()))
            .map(|_| RunLink::start())
            .collect::<Result<Vec<_>, _>>()?;
        let next = AtomicUsize::new(0);
        let mut results: Vec<Option<CellResult<S>>> = vec![None; subjects.len()];
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for mut lane in lanes {
                let (sender, plans, next) = (sender.clone(), &plans, &next);
                scope.spawn(move || {
                    while let Some(plan) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let run = |it: RunAttempt| {
                            thread::sleep(it.pause);
                            lane.run(&plan.subject, it.seed, it.expected)
                        };
                        let done = self.cell(plan, &sender, run);
                        let done = done.map(|result| Event::Done(plan.number, Box::new(result)));
                        let broke = done.is_err();
                        if sender.send(done).is_err() || broke {
                            return;
                        }
                    }
                });
            }
            drop(sender);
            for event in receiver {
                let event = event?;
                on_event(&event);
                if let Event::Done(number, result) = event {
                    results[number] = Some(*result);
                }
            }
            let all = results
                .into_iter()
                .map(|it| it.expect("progress was reported for every cell"));
            Ok(all.collect())
        })
    }

    fn cell<S: Workload>(
        &self,
        plan: &PlannedCell<S>,
        sender: &mpsc::Sender<Result<Event<S>, CalibrateError>>,
        mut run_once: impl FnMut(RunAttempt) -> Result<RunResult, CalibrateError>,
    ) -> Result<CellResult<S>, CalibrateError> {
        let ms = |time: &Duration| time.as_secs_f64() * 1e3;
        let mut result = CellResult {
            subject: plan.subject.clone(),
            virtual_ms: Vec::new(),
            real_ms: Vec::new(),
            computed_ms: Vec::new(),
            requested_runs: plan.runs,
            repeated: 0,
            incomplete_reason: None,
        };
        let mut left: VecDeque<(u32, u32)> = (0..plan.runs).map(|run| (run, 0)).collect();
        while let Some((run, attempts)) = left.pop_front() {
            let expected = plan.expected(run);
            let ran = run_once(RunAttempt {
                pause: RETRY_PAUSE * attempts,
                seed: self.seed_of(run),
                expected,
            })?;
            let reason = match ran.took {
                Ok(took) => {
                    result.real_ms.push(ms(&took));
                    result.computed_ms.extend(ran.computed.as_ref().map(ms));
                    if plan.subject.is_lossy() {
                        result.virtual_ms.push(ms(&expected));
                    }
                    let _ = sender.send(Ok(Event::Ran(expected))); // the caller may have stopped
                    continue;
                }
                Err(reason) => reason,
            };
            result.repeated += 1;
            if attempts < MAX_RETRIES {
                left.push_back((run, attempts + 1));
            } else {
                result.incomplete_reason = Some(reason);
                let _ = sender.send(Ok(Event::Ran(expected)));
            }
        }
        if !plan.subject.is_lossy() {
            result.virtual_ms = plan.virtual_times.iter().map(ms).collect();
        }
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::download_cell::{self, DownloadCell};

    const WORK: CalibrationRunner = CalibrationRunner {
        runs: 3,
        lossy_runs: 5,
        seed: 7,
        links: 1,
    };

    /// The result of a cell without loss. `took` maps the seed and number (from 1) of an attempt to its result.
    fn cell(
        mut took: impl FnMut(u64, u32) -> Result<Duration, String>,
    ) -> CellResult<DownloadCell> {
        let plans = WORK.plan(&download_cell::small()[..1], |_| {});
        let plans = plans.expect("it ends in virtual time");
        let (sender, _receiver) = mpsc::channel();
        let mut attempts = 0;
        let run = |it: RunAttempt| {
            attempts += 1;
            let computed = Some(Duration::from_millis(1));
            let took = took(it.seed, attempts);
            Ok(RunResult { took, computed })
        };
        let result = WORK.cell(&plans[0], &sender, run);
        result.expect("no link broke")
    }

    /// Regression: one incomplete load ended a whole calibration with an error, and all measurements were lost.
    #[test]
    fn a_failed_real_run_is_retried_like_a_late_one() {
        let mut seeds = Vec::new();
        let result = cell(|seed, attempt| {
            seeds.push(seed);
            match attempt {
                1 => Err("it is incomplete".to_owned()),
                _ => Ok(Duration::from_millis(u64::from(attempt))),
            }
        });
        assert_eq!(seeds, [7, 8, 9, 7], "with its own seed, after the others");
        assert_eq!(result.real_ms, [2.0, 3.0, 4.0]);
        assert_eq!(result.computed_ms, [1.0; 3]);
        assert_eq!((result.repeated, result.incomplete_reason), (1, None));
    }

    #[test]
    fn each_subject_is_reported_when_it_is_predicted() {
        let mut predicted = 0;
        let plans = WORK.plan(&download_cell::small()[..3], |event| {
            assert!(matches!(event, Event::Predicted), "{event:?}");
            predicted += 1;
        });
        assert_eq!(plans.expect("they end in virtual time").len(), predicted);
    }

    #[test]
    fn an_invalid_run_is_dropped_and_other_runs_of_its_cell_stay() {
        let mut failed = 0;
        let result = cell(|seed, _| match seed {
            8 => {
                failed += 1;
                Err(format!("it is incomplete, {failed} times"))
            }
            _ => Ok(Duration::from_millis(seed)),
        });
        assert_eq!(result.real_ms, [7.0, 9.0]);
        assert_eq!(
            (failed, result.repeated),
            (MAX_RETRIES + 1, MAX_RETRIES + 1)
        );
        assert_eq!(
            result.incomplete_reason.as_deref(),
            Some("it is incomplete, 11 times")
        );
    }
}
