//! Trying every remedy on one page, over one network.

use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use serde::Serialize;
use spdy_page::graph::PageGraph;
use spdy_page::replica::Replica;

use super::remedy::{Remedy, own_host, remedies};
use super::treated::Treated;
use crate::browser;
use crate::measure::Load;
use crate::options::{Options, RaceProtocol};
use crate::race::RaceNetwork;
use crate::stats::median;
use crate::workers;

/// What is examined: a page as it is loaded today.
#[derive(Clone, Debug)]
pub struct Case {
    /// The page.
    pub replica: Replica,
    /// The network.
    pub network: RaceNetwork,
    /// The protocol.
    pub protocol: RaceProtocol,
    /// Every other choice of a load.
    pub options: Options,
    /// Loads with each remedy, at least 1; more than one only tells something where there is chance (loss, jitter).
    pub runs: u32,
    /// The seed of the first run.
    pub seed: u64,
}

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
    /// Loads with each remedy.
    pub runs: u32,
    /// The page as it is.
    pub now: Times,
    /// Each remedy that was tried, in the order of trying.
    pub findings: Vec<Finding>,
    /// What went wrong with the page as it is: then its times are of what was loaded.
    pub failures: Vec<String>,
}

/// One remedy, and what it does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The remedy.
    #[serde(flatten)]
    pub remedy: Remedy,
    /// With it.
    #[serde(flatten)]
    pub then: Times,
    /// Median of what each run has earlier than the run of the same seed without it: load. Less than 0: later.
    pub saved_load_ms: f64,
    /// Likewise DOMContentLoaded.
    pub saved_dom_content_loaded_ms: f64,
    /// Whether all of the page came, in every run in which it did so without the remedy.
    pub is_whole: bool,
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

impl Case {
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
            None => self.loads(&Treated::untreated(self, &graph)),
            Some(remedy) => self.loads(&Treated::with(self, &graph, &remedies[remedy])),
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
        let findings = remedies
            .into_iter()
            .zip(results)
            .map(|(remedy, then)| Some(finding(remedy, &now, &then?)));
        Some(Examination {
            replica: self.replica.name.clone(),
            host: own_host(&self.replica),
            network: self.network.name.clone(),
            protocol: self.protocol.to_string(),
            runs: self.runs,
            now: Times::of(&now),
            findings: findings.collect::<Option<_>>()?,
            failures: now.into_iter().flat_map(|load| load.failures).collect(),
        })
    }

    fn loads(&self, treated: &Treated) -> Vec<Load> {
        let Treated {
            page,
            protocol,
            network,
            options,
        } = treated;
        let config = network.config(options);
        let seeds = (0..self.runs).map(|run| self.seed.wrapping_add(u64::from(run)));
        seeds
            .map(|seed| {
                let load = browser::load(page, *protocol, &network.name, &config, options, seed);
                Load {
                    waterfall: Vec::new(), // nobody looks at hundreds of them
                    ..load
                }
            })
            .collect()
    }
}

fn finding(remedy: Remedy, now: &[Load], then: &[Load]) -> Finding {
    let pairs = || now.iter().zip(then);
    let saved = |value: fn(&Load) -> f64| {
        median(pairs().map(|(now, then)| value(now) - value(then))).unwrap_or_default()
    };
    Finding {
        remedy,
        then: Times::of(then),
        saved_load_ms: saved(|load| load.load_ms),
        saved_dom_content_loaded_ms: saved(|load| load.dom_content_loaded_ms),
        is_whole: pairs().all(|(now, then)| !now.failures.is_empty() || then.failures.is_empty()),
    }
}
