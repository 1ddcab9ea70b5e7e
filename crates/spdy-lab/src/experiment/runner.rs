//! Doing it: a plan with its pages opened, the loads of one cell, and many cells on all cores.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::Arc;

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

/// A plan that can be run.
pub struct Runner {
    plan: Plan,
    pages: Vec<ExperimentPage>,
}

/// A page, prepared as the levels of its cells require.
struct ExperimentPage {
    replica: Replica,
    /// By where its resources lie, once a cell requires it.
    ready: Mutex<BTreeMap<HostLayout, Arc<Page>>>,
    fingerprint: Fingerprint,
}

/// SHA-256 of a page: every head, body and address of it, as its file has them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// That of `replica`.
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
    /// What it was loaded under.
    pub conditions: Conditions,
    /// One a run, without their waterfalls.
    pub loads: Vec<Load>,
    /// What each was under in real time, one a load; empty in virtual time.
    pub real: Vec<RealRun>,
}

impl CellLoads<'_> {
    /// Runs in real time that do not count, however often they were tried.
    #[must_use]
    pub fn invalid(&self) -> usize {
        let runs = self.real.iter();
        runs.filter(|run| !run.invalid.is_empty()).count()
    }
}

impl ExperimentPage {
    /// The page with its resources laid out as `hosts`, prepared once.
    fn page(&self, hosts: HostLayout) -> Arc<Page> {
        let mut ready = self.ready.lock();
        let page = ready.entry(hosts);
        page.or_insert_with(|| Arc::new(hosts.page(&self.replica)))
            .clone()
    }
}

impl Runner {
    /// A runner of `plan`; `replicas` are its pages, in its order.
    ///
    /// # Panics
    ///
    /// If there are not as many replicas as pages.
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
        Self { plan, pages }
    }

    /// The plan.
    #[must_use]
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The fingerprint of the page of `cell`, as it was before it was folded or sharded.
    #[must_use]
    pub fn fingerprint(&self, cell: &Cell<'_>) -> &Fingerprint {
        &self.pages[cell.page].fingerprint
    }

    /// The fingerprints of all pages, in the plan's order.
    pub fn fingerprints(&self) -> impl Iterator<Item = &Fingerprint> {
        self.pages.iter().map(|opened| &opened.fingerprint)
    }

    /// The page of `cell` with its resources where `conditions` has them.
    pub(crate) fn page(&self, cell: &Cell<'_>, conditions: &Conditions) -> Arc<Page> {
        self.pages[cell.page].page(conditions.hosts)
    }

    /// Loads all runs of one cell on this thread, in virtual time whatever its clock. Returns `None` if `stops`, called before
    /// each run, returned true. Never call it inside a runtime of tokio: see [`Executor`](spdy_sim::runtime::Executor).
    ///
    /// # Errors
    ///
    /// Levels that do not go together; a plan that was read has none.
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
        let runs = 1..=self.plan.runs();
        let loads: Option<_> = runs.map(|number| (!stops()).then(|| run(number))).collect();
        Ok(loads.map(|loads| CellLoads {
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
    /// As [`load`](Self::load).
    pub fn load_run(&self, cell: &Cell<'_>, run: u32) -> Result<Load, PlanError> {
        Ok(self.load_under(&Conditions::of(cell)?, cell, run))
    }

    fn load_under(&self, conditions: &Conditions, cell: &Cell<'_>, run: u32) -> Load {
        let opened = &self.pages[cell.page];
        load::load(
            &opened.page(conditions.hosts),
            cell.protocol(),
            &conditions.network.name,
            &conditions.network.config(&conditions.options),
            &conditions.options,
            cell.seed(run),
        )
    }

    /// Loads the cells of these numbers (from 1) in virtual time on `jobs` threads (`None`: one a core). Each cell goes
    /// to `on_cell` as soon as it is done, in any order. Ends when `on_cell` breaks off or `stops` returns true: the
    /// loads under way are then the last, and incomplete cells are dropped.
    ///
    /// # Panics
    ///
    /// If there is no cell of one of the numbers, or a load panics, which is a fault of this program.
    pub fn run<'a>(
        &'a self,
        numbers: &[usize],
        jobs: Option<NonZeroUsize>,
        stops: impl Fn() -> bool + Sync,
        mut on_cell: impl FnMut(Result<CellLoads<'a>, PlanError>) -> ControlFlow<()>,
    ) {
        let work = |at: usize| self.load(self.plan.cell_at(numbers[at] - 1), &stops);
        workers::each(numbers.len(), jobs, work, |_, loads| {
            // One that is whole may come after one that is not.
            loads
                .transpose()
                .map_or(ControlFlow::Continue(()), &mut on_cell)
        });
    }
}
