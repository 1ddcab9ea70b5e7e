//! Tests every remedy on one page over one network.

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

/// Number of loads with each remedy that distinguishes most differences from randomness.
pub const CHANCE_RUNS: u32 = 9;

/// The result of an examination. Times are virtual milliseconds, medians of all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Examination {
    /// Name of the page.
    pub replica: String,
    /// Authority of its document.
    pub host: String,
    /// Name of the network.
    pub network: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Loads of the unchanged page.
    pub runs: u32,
    /// Times of the unchanged page.
    pub now: Times,
    /// Each tested remedy, in the order of testing.
    pub findings: Vec<RemedyResult>,
    /// Failures of the unchanged page; its times are then those of the loaded resources.
    pub failures: Vec<String>,
}

/// One remedy and its effect.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RemedyResult {
    /// The remedy.
    #[serde(flatten)]
    pub remedy: Remedy,
    /// Times with it.
    #[serde(flatten)]
    pub then: Times,
    /// Loads with it; 1 without randomness.
    pub runs: u32,
    /// Saving of the load event.
    #[serde(rename = "saved_load")]
    pub load: SavedTime,
    /// Saving of DOMContentLoaded.
    #[serde(rename = "saved_dom_content_loaded")]
    pub dom_content_loaded: SavedTime,
    /// True if the page is complete in every run in which it is complete without the remedy.
    pub is_whole: bool,
}

/// Time saved by a change. Negative: later.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedTime {
    /// Median over runs of the difference to the run with the same seed without the change, milliseconds.
    pub median_ms: f64,
    /// Lower end of its 95 % interval.
    pub low_ms: f64,
    /// Upper end of its 95 % interval.
    pub high_ms: f64,
    /// True without randomness, when one run is enough.
    pub is_exact: bool,
    /// True if there is a difference: the interval does not include 0, and is of at least 6 runs ([`MIN_RUNS`]) or without
    /// randomness. If false, either may be earlier.
    pub is_certain: bool,
}

impl SavedTime {
    /// Summarises the differences of `runs`.
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

    /// The median if there is a difference, else `None`.
    #[must_use]
    pub fn certain_ms(&self) -> Option<f64> {
        self.is_certain.then_some(self.median_ms)
    }
}

/// Times and connections of loads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// Time of the load event.
    pub load_ms: f64,
    /// Time of DOMContentLoaded.
    pub dom_content_loaded_ms: f64,
    /// Number of connections, of TCP or QUIC.
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
    /// Tests all remedies. `on_done` is called after each remedy with the number of completed and of all remedies. If it returns
    /// `Break` there is no result.
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
        // The unchanged page is first, then each remedy.
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
            let protocol = match &remedy {
                Remedy::Protocol { protocol } => *protocol,
                _ => self.protocol,
            };
            let network = ModifiedPage::network(self, &remedy);
            let has_chance =
                network.differs_by_seed(protocol) || self.network.differs_by_seed(self.protocol);
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
        let runs = match network.differs_by_seed(*protocol) {
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
    // Without randomness there is one load, which is compared with all of the other side.
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
