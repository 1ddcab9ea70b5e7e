//! Watches a store while it grows: one thread reads it and makes its report for all queries.
//!
//! It is a plain thread, since waterfalls are loaded in virtual time, which must not run inside a runtime.

use std::collections::VecDeque;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use serde::Serialize;
use spdy_lab::store::location::Location;
use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::open::Store;
use spdy_report::experiment::{self, TrialWaterfalls};
use tokio::sync::oneshot;

use super::waterfall_args::WaterfallArgs;
use crate::output::Printer;

/// The rate of cells is computed over this time.
const WINDOW: Duration = Duration::from_secs(60);

/// Most queries in the queue of the thread. A query stays there when its client disconnects.
const MAX_QUERIES: usize = 64;

/// What a query returns.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum QueryKind {
    /// A JSON object: how far it is.
    State,
    /// The report as HTML.
    Report,
}

type Answer = anyhow::Result<String>;
type Query = (QueryKind, oneshot::Sender<Answer>);

/// Questions to the thread.
pub(crate) struct StoreWatcher {
    queries: mpsc::SyncSender<Query>,
}

impl StoreWatcher {
    /// Starts the watcher thread. It ends when the last sender is dropped.
    pub(crate) fn start(
        store: Location,
        waterfalls: WaterfallArgs,
        printer: &Printer,
    ) -> anyhow::Result<Self> {
        let (queries, receiver) = mpsc::sync_channel(MAX_QUERIES);
        let mut watched = WatchState {
            store,
            waterfalls,
            printer: printer.clone(),
            last: None,
            seen: VecDeque::new(),
            report: None,
        };
        let thread = thread::Builder::new().name("watch".to_owned());
        thread.spawn(move || {
            answer_each(&receiver, |kind| match kind {
                QueryKind::State => watched.state_reply(Instant::now()),
                QueryKind::Report => watched.report(),
            });
        })?;
        Ok(Self { queries })
    }

    /// The watcher's reply.
    ///
    /// # Errors
    ///
    /// [`MAX_QUERIES`] queries are already waiting, or the store cannot be read.
    pub(crate) async fn query(&self, kind: QueryKind) -> Answer {
        let answer = self.submit(kind)?;
        answer.await.context("the store watcher has stopped")?
    }

    fn submit(&self, kind: QueryKind) -> anyhow::Result<oneshot::Receiver<Answer>> {
        let (reply, answer) = oneshot::channel();
        match self.queries.try_send((kind, reply)) {
            Ok(()) => Ok(answer),
            Err(mpsc::TrySendError::Full(_)) => {
                anyhow::bail!("{MAX_QUERIES} queries are already waiting: try again later")
            }
            Err(mpsc::TrySendError::Disconnected(_)) => {
                anyhow::bail!("the store watcher has stopped")
            }
        }
    }
}

/// Answers queries until every sender is dropped. A report may take long, so a cancelled query is skipped.
fn answer_each(queries: &mpsc::Receiver<Query>, mut answer: impl FnMut(QueryKind) -> Answer) {
    for (kind, reply) in queries {
        if !reply.is_closed() {
            let _ = reply.send(answer(kind)); // the query may be cancelled by now
        }
    }
}

struct WatchState {
    store: Location,
    waterfalls: WaterfallArgs,
    printer: Printer,
    /// The version of the store at the last `State`.
    last: Option<StoreVersion>,
    /// Number of cells at recent times.
    seen: VecDeque<(Instant, usize)>,
    /// The last report, with its store version.
    report: Option<(StoreVersion, String)>,
}

/// The version of a store: a report is made again if it changes.
///
/// The number of cells alone would not do, for another store may be put in the place of the first with as many.
#[derive(Debug, Eq, Hash, PartialEq)]
struct StoreVersion {
    contents: Manifest,
    /// Cells that are there.
    cells: usize,
    /// How long the file is in bytes, and when it was written to last; none if it is no file.
    file: Option<(u64, SystemTime)>,
}

impl StoreVersion {
    /// Opens the store at `location`, and returns its version. The file's length and time are read first: a change during this call gives
    /// another edition, at worst one too many.
    fn open(location: &Location) -> anyhow::Result<(Self, Store)> {
        let file = location.file().and_then(|path| fs::metadata(path).ok());
        let file = file.and_then(|file| Some((file.len(), file.modified().ok()?)));
        let mut store = Store::open(location)?;
        let edition = Self {
            contents: store.contents()?,
            cells: store.finished()?.len(),
            file,
        };
        Ok((edition, store))
    }

    /// A name for it, the same for every process of this program: a page may outlive the one that served it.
    fn name(&self) -> String {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        format!("{:016x}", hasher.finish())
    }

    /// Whether the cells of `earlier` are probably among its own.
    fn goes_on_from(&self, earlier: &Self) -> bool {
        self.contents == earlier.contents && self.cells >= earlier.cells
    }
}

/// How far a store is.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum StateReply {
    State(State),
    /// The store cannot be read, or does not exist yet.
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
    /// Loads per cell.
    runs: u64,
    /// Estimated seconds until all cells are there, if cells were added in the last minute.
    left_s: Option<u64>,
    /// The report changes when this changes.
    edition: String,
}

impl WatchState {
    /// The state as JSON. A store that does not exist yet is no error, but a `problem` in the reply.
    fn state_reply(&mut self, now: Instant) -> Answer {
        let reply = match self.state(now) {
            Ok(state) => StateReply::State(state),
            Err(error) => StateReply::Problem {
                problem: format!("{error:#}"),
            },
        };
        Ok(serde_json::to_string(&reply)?)
    }

    fn state(&mut self, now: Instant) -> anyhow::Result<State> {
        let (edition, _) = StoreVersion::open(&self.store)?;
        let last = self.last.as_ref();
        if last.is_some_and(|last| !edition.goes_on_from(last)) {
            self.seen.clear(); // the rate of another store does not apply to this one
        }
        self.seen.push_back((now, edition.cells));
        while let Some((at, _)) = self.seen.front()
            && now.duration_since(*at) > WINDOW
        {
            self.seen.pop_front();
        }
        let contents = &edition.contents;
        let state = State {
            name: contents.name.clone(),
            done: edition.cells,
            cells: contents.cells,
            runs: contents.runs,
            left_s: remaining_time(&self.seen, contents.cells)
                .map(|remaining| remaining.as_secs().max(1)),
            edition: edition.name(),
        };
        self.last = Some(edition);
        Ok(state)
    }

    /// The report, made again only if the store has changed. If a cell for the waterfalls is missing, only the waterfalls are left out.
    fn report(&mut self) -> Answer {
        let (edition, mut store) = StoreVersion::open(&self.store)?;
        if let Some((of, report)) = &self.report
            && *of == edition
        {
            return Ok(report.clone());
        }
        let (contents, rows) = (&edition.contents, store.rows()?);
        let again = if edition.cells as u64 >= contents.cells {
            let (waterfalls, printer) = (&self.waterfalls, &self.printer);
            let again = waterfalls.again(&self.store, contents, &rows, printer);
            again.unwrap_or_else(|error| TrialWaterfalls::none(&format!("{error:#}.")))
        } else {
            TrialWaterfalls::none("Waterfalls appear when all cells are complete.")
        };
        let report = experiment::render(contents, &rows, &again);
        self.report = Some((edition, report.clone()));
        Ok(report)
    }
}

/// Estimated time for the missing of `cells`, at the rate of the cells in `seen`.
fn remaining_time(seen: &VecDeque<(Instant, usize)>, cells: u64) -> Option<Duration> {
    let (from, first) = seen.front()?;
    let (to, last) = seen.back()?;
    let missing = cells.saturating_sub(*last as u64);
    let added = last.saturating_sub(*first);
    (missing > 0 && added > 0).then(|| {
        let each = to.duration_since(*from).as_secs_f64() / added as f64;
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
        let remaining = |seen: &[(Instant, usize)], cells| {
            remaining_time(&seen.iter().copied().collect(), cells)
        };
        assert_eq!(remaining(&[], 10), None);
        assert_eq!(
            remaining(&[at(0, 4), at(3, 4)], 10),
            None,
            "no cell was added"
        );
        assert_eq!(
            remaining(&[at(0, 0), at(2, 4)], 10),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            remaining(&[at(0, 8), at(2, 10)], 10),
            None,
            "all cells are complete"
        );
    }
    #[test]
    fn the_query_queue_is_bounded_and_drops_cancelled_queries() {
        let (queries, receiver) = mpsc::sync_channel(MAX_QUERIES);
        let watch = StoreWatcher { queries };
        let mut waiting: Vec<_> = (0..MAX_QUERIES)
            .map(|_| watch.submit(QueryKind::State).expect("the queue has space"))
            .collect();
        let refused = watch
            .submit(QueryKind::Report)
            .expect_err("the queue is full");
        assert!(refused.to_string().contains("64 queries"), "{refused}");

        drop(watch);
        waiting.truncate(1);
        let mut answers = 0;
        answer_each(&receiver, |_| {
            answers += 1;
            Ok("far".to_owned())
        });
        assert_eq!(answers, 1);
        let answer = waiting[0].try_recv().expect("the watcher has replied");
        assert_eq!(answer.expect("the reply is a report"), "far");
    }

    #[test]
    fn a_version_changes_with_any_input_of_the_report() {
        let edition = || StoreVersion {
            contents: Manifest {
                name: "small".to_owned(),
                hash: "00ff".to_owned(),
                program: "0.1.0".to_owned(),
                model: Some(1),
                runs: 1,
                cells: 4,
                plan: String::new(),
                pages: vec![("portal".to_owned(), "aa".to_owned())],
            },
            cells: 3,
            file: Some((4_096, SystemTime::UNIX_EPOCH)),
        };
        let first = edition();
        assert_eq!(first.name(), edition().name());
        let changes: [fn(&mut StoreVersion); 6] = [
            |it| it.contents.hash.push('0'),
            |it| it.contents.program.push('1'),
            |it| it.contents.pages[0].1.push('b'),
            |it| it.cells = 4,
            |it| it.file = Some((4_097, SystemTime::UNIX_EPOCH)),
            |it| it.file = Some((4_096, SystemTime::UNIX_EPOCH + Duration::from_nanos(1))),
        ];
        for (at, change) in changes.iter().enumerate() {
            let mut other = edition();
            change(&mut other);
            assert_ne!(other, first, "{at}");
            assert_ne!(other.name(), first.name(), "{at}");
            // More cells, or a later time: the same store, further on.
            assert_eq!(other.goes_on_from(&first), at >= 3, "{at}");
        }
        let fewer = StoreVersion {
            cells: 2,
            ..edition()
        };
        assert!(!fewer.goes_on_from(&first));
    }
}
