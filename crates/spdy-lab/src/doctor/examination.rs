//! Trying every remedy on one page, over one network.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use serde::Serialize;
use spdy_page::graph::PageGraph;
use spdy_sim::load;
use spdy_sim::load::Load;
use spdy_sim::workers;

use super::modified_page::ModifiedPage;
use super::remedy::{Remedy, own_host, remedies};
use crate::stats::{Bootstrap, Estimate, MIN_RUNS, median};

pub use super::case::ExaminationCase;

/// Loads with each remedy that are enough to distinguish most differences from chance.
pub const CHANCE_RUNS: u32 = 9;

/// What came of it. Times are virtual milliseconds, medians of all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Examination {
    /// Name of the page.
    pub replica: String,
    /// Authority of its document.
    pub host: String,
    /// Name of the network.
    pub network: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Loads of the page as it is.
    pub runs: u32,
    /// The page as it is.
    pub now: Times,
    /// Each remedy that was tried, in the order of trying.
    pub findings: Vec<RemedyResult>,
    /// What went wrong with the page as it is: then its times are of what was loaded.
    pub failures: Vec<String>,
}

/// One remedy, and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemedyResult {
    /// The remedy.
    #[serde(flatten)]
    pub remedy: Remedy,
    /// With it.
    #[serde(flatten)]
    pub then: Times,
    /// Loads with it; 1 without chance.
    pub runs: u32,
    /// How much earlier load comes.
    #[serde(rename = "saved_load")]
    pub load: SavedTime,
    /// How much earlier DOMContentLoaded comes.
    #[serde(rename = "saved_dom_content_loaded")]
    pub dom_content_loaded: SavedTime,
    /// Whether all of the page came, in every run in which it did so without the remedy.
    pub is_whole: bool,
}

/// How much earlier something comes with a change. Less than 0: later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SavedTime {
    /// Median over runs of the difference to the run of the same seed without the change, milliseconds.
    pub median_ms: f64,
    /// Lower end of the 95 % interval of that.
    pub low_ms: f64,
    /// Upper end.
    pub high_ms: f64,
    /// Whether there is no chance in it, so that one run is enough.
    pub is_exact: bool,
    /// Whether there is a difference: the interval does not include 0, and is of at least [`MIN_RUNS`] runs or has no
    /// chance in it. If not, either may be earlier.
    pub is_certain: bool,
}

impl SavedTime {
    /// Of the differences of `runs`, in which there is chance or none.
    fn of(runs: &[f64], has_chance: bool) -> Self {
        let middle = |runs: &[f64]| median(runs.iter().copied()).unwrap_or_default();
        let estimate = match has_chance {
            true => Bootstrap::default().of(runs, middle),
            false => None,
        };
        let estimate = estimate.unwrap_or(Estimate::exact(middle(runs)));
        let enough = !has_chance || runs.len() >= MIN_RUNS;
        Self {
            median_ms: estimate.value,
            low_ms: estimate.low,
            high_ms: estimate.high,
            is_exact: !has_chance,
            is_certain: enough && !estimate.contains(0.0),
        }
    }

    /// The median if there is a difference, else nothing.
    #[must_use]
    pub fn certain_ms(&self) -> Option<f64> {
        self.is_certain.then_some(self.median_ms)
    }
}

/// Times and connections of loads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Load.
    pub load_ms: f64,
    /// DOMContentLoaded.
    pub dom_content_loaded_ms: f64,
    /// TCP connections.
    pub connections: f64,
}

impl Times {
    pub(crate) fn of(loads: &[Load]) -> Self {
        let middle = |value: fn(&Load) -> f64| median(loads.iter().map(value)).unwrap_or_default();
        Self {
            load_ms: middle(|load| load.load_ms),
            dom_content_loaded_ms: middle(|load| load.dom_content_loaded_ms),
            connections: middle(|load| load.connections as f64),
        }
    }
}

impl ExaminationCase {
    /// Tries everything. `on_done` hears after each remedy how many of how many are done, and may break off: then there
    /// is no result.
    ///
    /// # Panics
    ///
    /// If a load panics, which is a fault of this program.
    pub fn examine(
        &self,
        threads: Option<NonZeroUsize>,
        mut on_done: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Option<Examination> {
        let graph = PageGraph::of(&self.replica);
        let remedies = remedies(&self.replica, &graph, self.protocol, &self.network.profile);
        // The page as it is comes first, then each remedy.
        let total = 1 + remedies.len();
        let work = |number: usize| match number.checked_sub(1) {
            None => self.loads(&ModifiedPage::unmodified(self, &graph)),
            Some(remedy) => self.loads(&ModifiedPage::with(self, &graph, &remedies[remedy])),
        };
        let mut results: Vec<Option<Vec<Load>>> = vec![None; total];
        let mut done = 0;
        workers::each(total, threads, work, |number, loads| {
            results[number] = Some(loads);
            done += 1;
            on_done(done, total)
        });
        let mut results = results.into_iter();
        let now = results.next()??;
        let findings = remedies.into_iter().zip(results).map(|(remedy, then)| {
            let has_chance = ModifiedPage::network(self, &remedy)
                .profile
                .path
                .is_random();
            Some(finding(remedy, has_chance, &now, &then?))
        });
        Some(Examination {
            replica: self.replica.name.clone(),
            host: own_host(&self.replica),
            network: self.network.name.clone(),
            protocol: self.protocol.to_string(),
            runs: u32::try_from(now.len()).unwrap_or(u32::MAX),
            now: Times::of(&now),
            findings: findings.collect::<Option<_>>()?,
            failures: now.into_iter().flat_map(|load| load.failures).collect(),
        })
    }

    fn loads(&self, treated: &ModifiedPage) -> Vec<Load> {
        let ModifiedPage {
            page,
            protocol,
            network,
            options,
        } = treated;
        let runs = match network.profile.path.is_random() {
            true => self.runs,
            false => 1,
        };
        let config = network.config(options);
        let seeds = (0..runs).map(|run| self.seed.wrapping_add(u64::from(run)));
        seeds
            .map(|seed| {
                let load = load::load(page, *protocol, &network.name, &config, options, seed);
                Load {
                    waterfall: Vec::new(), // not used: there are hundreds of them
                    ..load
                }
            })
            .collect()
    }
}

fn finding(remedy: Remedy, has_chance: bool, now: &[Load], then: &[Load]) -> RemedyResult {
    // Without chance there is one load, which stands for all of the other side.
    let runs = now.len().max(then.len());
    let pairs = || {
        let pairs = now.iter().cycle().zip(then.iter().cycle());
        pairs.take(runs)
    };
    let saved = |value: fn(&Load) -> f64| {
        let runs: Vec<f64> = pairs()
            .map(|(now, then)| value(now) - value(then))
            .collect();
        SavedTime::of(&runs, has_chance)
    };
    RemedyResult {
        remedy,
        then: Times::of(then),
        runs: u32::try_from(then.len()).unwrap_or(u32::MAX),
        load: saved(|load| load.load_ms),
        dom_content_loaded: saved(|load| load.dom_content_loaded_ms),
        is_whole: pairs().all(|(now, then)| !now.failures.is_empty() || then.failures.is_empty()),
    }
}
