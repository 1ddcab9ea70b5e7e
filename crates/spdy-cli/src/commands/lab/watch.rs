//! A store that is looked at while it grows: one thread reads it and makes its report, for whoever asks.
//!
//! It is a plain thread, since waterfalls are loaded in virtual time, which must not run inside a runtime.

use std::collections::VecDeque;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;
use spdy_lab::report::experiment::{self, Again};
use spdy_lab::store::location::Location;
use spdy_lab::store::results::Store;
use tokio::sync::oneshot;

use super::report::WaterfallArgs;
use crate::printer::Printer;

/// What is reckoned of how fast cells come: those of so long.
const WINDOW: Duration = Duration::from_secs(60);

/// What may be asked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Asked {
    /// A JSON object: how far it is.
    State,
    /// The report as HTML.
    Report,
}

type Answer = anyhow::Result<String>;

/// Questions to the thread.
pub(super) struct Watch {
    questions: mpsc::Sender<(Asked, oneshot::Sender<Answer>)>,
}

impl Watch {
    /// Starts watching; it ends with the last that asks.
    pub(super) fn start(
        store: Location,
        waterfalls: WaterfallArgs,
        printer: &Printer,
    ) -> anyhow::Result<Self> {
        let (questions, asked) = mpsc::channel::<(Asked, oneshot::Sender<Answer>)>();
        let mut watched = Watched {
            store,
            waterfalls,
            printer: printer.clone(),
            seen: VecDeque::new(),
            report: None,
        };
        let thread = thread::Builder::new().name("watch".to_owned());
        thread.spawn(move || {
            for (asked, reply) in asked {
                let answer = match asked {
                    Asked::State => watched.told(Instant::now()),
                    Asked::Report => watched.report(),
                };
                let _ = reply.send(answer); // who asked may have gone
            }
        })?;
        Ok(Self { questions })
    }

    pub(super) async fn ask(&self, asked: Asked) -> Answer {
        let (reply, answer) = oneshot::channel();
        self.questions
            .send((asked, reply))
            .context("the store is watched no more")?;
        answer.await.context("the store is watched no more")?
    }
}

struct Watched {
    store: Location,
    waterfalls: WaterfallArgs,
    printer: Printer,
    /// Cells that were there, and when.
    seen: VecDeque<(Instant, usize)>,
    /// The last report, and of how many cells it was.
    report: Option<(usize, String)>,
}

/// How far a store is.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Told {
    State(State),
    /// It cannot be read, or is not there yet.
    Problem {
        problem: String,
    },
}

#[derive(Debug, Serialize)]
struct State {
    name: String,
    /// Cells that are there.
    done: usize,
    /// Cells when all are.
    cells: u64,
    /// Loads of each.
    runs: u64,
    /// Seconds until all are there, if cells came in the last minute.
    left_s: Option<u64>,
}

impl Watched {
    /// A store that is not there yet is no fault, but something to tell.
    fn told(&mut self, now: Instant) -> Answer {
        let told = match self.state(now) {
            Ok(state) => Told::State(state),
            Err(error) => Told::Problem {
                problem: format!("{error:#}"),
            },
        };
        Ok(serde_json::to_string(&told)?)
    }

    fn state(&mut self, now: Instant) -> anyhow::Result<State> {
        let mut store = Store::open(&self.store)?;
        let (contents, done) = (store.contents()?, store.finished()?.len());
        self.seen.push_back((now, done));
        while let Some((at, _)) = self.seen.front()
            && now.duration_since(*at) > WINDOW
        {
            self.seen.pop_front();
        }
        Ok(State {
            name: contents.name,
            done,
            cells: contents.cells,
            runs: contents.runs,
            left_s: left(&self.seen, contents.cells).map(|left| left.as_secs().max(1)),
        })
    }

    /// The report, made anew only if there are more cells.
    fn report(&mut self) -> Answer {
        let mut store = Store::open(&self.store)?;
        let (contents, rows) = (store.contents()?, store.rows()?);
        let done = rows
            .chunk_by(|a, b| a.value("cell") == b.value("cell"))
            .count();
        if let Some((of, report)) = &self.report
            && *of == done
        {
            return Ok(report.clone());
        }
        let again = match done as u64 >= contents.cells {
            true => self
                .waterfalls
                .again(&self.store, &contents, &rows, &self.printer)?,
            false => Again::none("Waterfalls come when all cells are there."),
        };
        let report = experiment::render(&contents, &rows, &again);
        self.report = Some((done, report.clone()));
        Ok(report)
    }
}

/// How long the rest of `cells` takes at the pace of those that were `seen` to come.
fn left(seen: &VecDeque<(Instant, usize)>, cells: u64) -> Option<Duration> {
    let (from, first) = seen.front()?;
    let (to, last) = seen.back()?;
    let missing = cells.saturating_sub(*last as u64);
    let came = last.saturating_sub(*first);
    (missing > 0 && came > 0).then(|| {
        let each = to.duration_since(*from).as_secs_f64() / came as f64;
        Duration::from_secs_f64(each * missing as f64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_the_pace_of_the_last_cells() {
        let start = Instant::now();
        let at = |seconds, cells| (start + Duration::from_secs(seconds), cells);
        let left = |seen: &[(Instant, usize)], cells| left(&seen.iter().copied().collect(), cells);
        assert_eq!(left(&[], 10), None);
        assert_eq!(left(&[at(0, 4), at(3, 4)], 10), None, "nothing came");
        assert_eq!(
            left(&[at(0, 0), at(2, 4)], 10),
            Some(Duration::from_secs(3))
        );
        assert_eq!(left(&[at(0, 8), at(2, 10)], 10), None, "all are there");
    }
}
