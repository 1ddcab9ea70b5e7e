//! Runs a plan: opens its pages, loads one cell, or loads many cells on all cores.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use spdy_page::archive;
use spdy_page::replica::Replica;
use spdy_sim::load;
use spdy_sim::load::{HostLayout, Load, Page};
use spdy_sim::workers;

use crate::experiment::cell::Cell;
use crate::experiment::clock::RealRun;
use crate::experiment::conditions::Conditions;
use crate::experiment::error::PlanError;
use crate::experiment::plan::{Plan, hex};

/// A plan with its pages.
pub struct Runner {
    plan: Plan,
    pages: Vec<ExperimentPage>,
    /// Visits of all pages, by distribution of resources and pause, each created when a cell needs it.
    visits: Mutex<BTreeMap<(HostLayout, Duration), Visit>>,
}

/// The pages of a visit, in the plan's order.
type Visit = Vec<Arc<Page>>;

/// A page, prepared as the levels of its cells require.
struct ExperimentPage {
    replica: Replica,
    /// Prepared pages by distribution of resources, each created when a cell needs it.
    ready: Mutex<BTreeMap<HostLayout, Arc<Page>>>,
    fingerprint: Fingerprint,
}

/// SHA-256 of a page: every head, body and address, as in its file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// The fingerprint of `replica`.
    #[must_use]
    pub fn of(replica: &Replica) -> Self {
        Self(hex(&Sha256::digest(archive::encode(replica, false))))
    }

    /// In hexadecimal.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The loads of one cell.
#[derive(Clone, Debug)]
pub struct CellLoads<'a> {
    /// The cell.
    pub cell: Cell<'a>,
    /// Its conditions.
    pub conditions: Conditions,
    /// One load for each run, without waterfalls.
    pub loads: Vec<Load>,
    /// Measurements of each load in real time; empty in virtual time.
    pub real: Vec<RealRun>,
}

impl CellLoads<'_> {
    /// Number of invalid runs in real time after all attempts.
    #[must_use]
    pub fn invalid(&self) -> usize {
        let runs = self.real.iter();
        runs.filter(|run| !run.invalid.is_empty()).count()
    }
}

impl ExperimentPage {
    /// The page with its resources distributed as `hosts`, prepared once.
    fn page(&self, hosts: HostLayout) -> Arc<Page> {
        let mut ready = self.ready.lock();
        let page = ready.entry(hosts);
        page.or_insert_with(|| Arc::new(hosts.page(&self.replica)))
            .clone()
    }
}

impl Runner {
    /// Creates a runner of `plan`; `replicas` are its pages, in its order.
    ///
    /// # Panics
    ///
    /// If the number of replicas is not the number of pages.
    #[must_use]
    pub fn new(plan: Plan, replicas: Vec<Replica>) -> Self {
        assert_eq!(
            plan.pages().len(),
            replicas.len(),
            "a replica for each page"
        );
        let opened = |(name, mut replica): (&String, Replica)| {
            // Results identify pages by the plan's names.
            replica.name.clone_from(name);
            let fingerprint = Fingerprint::of(&replica);
            ExperimentPage {
                replica,
                ready: Mutex::default(),
                fingerprint,
            }
        };
        let pages = plan.pages().iter().zip(replicas).map(opened).collect();
        Self {
            plan,
            pages,
            visits: Mutex::default(),
        }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The fingerprint of the page of `cell`, before folding or sharding.
    #[must_use]
    pub fn fingerprint(&self, cell: &Cell<'_>) -> &Fingerprint {
        &self.pages[cell.page].fingerprint
    }

    /// The fingerprints of all pages, in the plan's order.
    pub fn fingerprints(&self) -> impl Iterator<Item = &Fingerprint> {
        self.pages.iter().map(|opened| &opened.fingerprint)
    }

    /// The page of `cell` as `conditions` require it.
    pub(crate) fn page(&self, cell: &Cell<'_>, conditions: &Conditions) -> Arc<Page> {
        let hosts = conditions.hosts;
        let Some(pause) = conditions.visit else {
            return self.pages[cell.page].page(hosts);
        };
        let mut visits = self.visits.lock();
        let visit = visits.entry((hosts, pause)).or_insert_with(|| {
            let pages = self.pages.iter().map(|page| hosts.page(&page.replica));
            load::visit(pages.collect(), pause)
        });
        visit[cell.page].clone()
    }

    /// Loads all runs of one cell on this thread, in virtual time even if its clock is real. Runs that
    /// [cannot differ](spdy_sim::race::RaceNetwork::differs_by_seed) are loaded once. Returns `None` if `stops`, which is called before
    /// each run, returns true. Never call it inside a runtime of tokio: see [`Executor`](spdy_sim::runtime::Executor).
    ///
    /// # Errors
    ///
    /// Levels that contradict each other; a parsed plan has none.
    pub fn load<'a>(
        &self,
        cell: Cell<'a>,
        stops: impl Fn() -> bool,
    ) -> Result<Option<CellLoads<'a>>, PlanError> {
        let conditions = Conditions::of(&cell)?;
        let run = |number| Load {
            waterfall: Vec::new(),
            ..self.load_under(&conditions, &cell, number)
        };
        let is_random = conditions.network.differs_by_seed(cell.protocol());
        let mut loads: Vec<Load> = Vec::new();
        for number in 1..=self.plan.runs() {
            if stops() {
                return Ok(None);
            }
            loads.push(match loads.first() {
                Some(first) if !is_random => Load {
                    seed: cell.seed(number),
                    ..first.clone()
                },
                _ => run(number),
            });
        }
        Ok(Some(CellLoads {
            cell,
            conditions,
            loads,
            real: Vec::new(),
        }))
    }

    /// Loads one run of `cell` (counted from 1) in virtual time, with its waterfall, on this thread.
    ///
    /// # Errors
    ///
    /// Like [`load`](Self::load).
    pub fn load_run(&self, cell: &Cell<'_>, run: u32) -> Result<Load, PlanError> {
        Ok(self.load_under(&Conditions::of(cell)?, cell, run))
    }

    fn load_under(&self, conditions: &Conditions, cell: &Cell<'_>, run: u32) -> Load {
        load::load(
            &self.page(cell, conditions),
            cell.protocol(),
            &conditions.network.name,
            &conditions.network.config(&conditions.options),
            &conditions.options,
            cell.seed(run),
        )
    }

    /// Loads the cells with these numbers (from 1) in virtual time on `jobs` threads (`None`: one per core). Calls `on_cell` with
    /// each cell as soon as it is done, in any order. Ends when `on_cell` returns `Break` or `stops` returns true: the loads in
    /// progress are then the last, and incomplete cells are dropped.
    ///
    /// # Panics
    ///
    /// If a number has no cell, or a load panics, which is a fault of this program.
    pub fn run<'a>(
        &'a self,
        numbers: &[usize],
        jobs: Option<NonZeroUsize>,
        stops: impl Fn() -> bool + Sync,
        mut on_cell: impl FnMut(Result<CellLoads<'a>, PlanError>) -> ControlFlow<()>,
    ) {
        let work = |at: usize| self.load(self.plan.cell_at(numbers[at] - 1), &stops);
        workers::each(numbers.len(), jobs, work, |_, loads| {
            // A complete cell may follow an incomplete one.
            loads
                .transpose()
                .map_or(ControlFlow::Continue(()), &mut on_cell)
        });
    }
}
