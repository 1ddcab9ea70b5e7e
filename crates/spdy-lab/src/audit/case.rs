//! An audit of one page with one configuration: deliveries of its resources, and loads without the accelerator and through it.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use serde::Serialize;
use spdy_page::graph::PageGraph;
use spdy_page::head;
use spdy_page::replica::Replica;
use spdy_proxy::config::learn::LearnConfig;
use spdy_sim::accelerator::site::OperatorConfig;
use spdy_sim::load;
use spdy_sim::load::{Load, Page};
use spdy_sim::options::{Accelerator, Options, Push, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use spdy_sim::workers;

use super::advice::Advice;
use super::survey::{Host, Survey};
use crate::doctor::examination::Times;
use crate::stats::median;

/// A part of the load time by which a page may be slower with the accelerator before hosts are left out.
const SLOWER: f64 = 0.01;
/// The part of the load time that a host must save if most of its bytes stay there. A browser then connects to it later, and with a
/// smaller window, by an amount that the model does not know exactly.
const LEAST_SAVED: f64 = 0.05;

/// The subject of an audit.
#[derive(Clone, Debug)]
pub struct AuditCase {
    /// The page.
    pub replica: Replica,
    /// Networks of the loads.
    pub networks: Vec<RaceNetwork>,
    /// Protocol of clients, to origins and to the accelerator.
    pub protocol: RaceProtocol,
    /// Options of a load without the accelerator.
    pub options: Options,
    /// The accelerator's configuration. `None`: the one that proxies most, which the audit then advises.
    pub operator: Option<OperatorConfig>,
    /// The pushes and hints of pages.
    pub learn: LearnConfig,
    /// Loads of each kind over each network, at least 1. More than one is useful only with randomness (loss, jitter).
    pub runs: u32,
    /// The seed of the first run.
    pub seed: u64,
}

/// The result of an audit. Times are virtual milliseconds, medians of all runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Audit {
    /// Name of the page.
    pub page: String,
    /// Authority of its document.
    pub host: String,
    /// Name of the protocol.
    pub protocol: String,
    /// Loads of each kind over each network.
    pub runs: u32,
    /// Whether the configuration is the operator's, or the one that proxies most.
    pub is_configured: bool,
    /// Delivery of every host and resource.
    #[serde(flatten)]
    pub survey: Survey,
    /// Configuration lines that would proxy more; without a configuration, those that were used.
    pub advice: Advice,
    /// Times over each network.
    pub savings: Vec<Saving>,
    /// Failures of loads, each once. Times are then those of the loaded resources.
    pub failures: Vec<LoadFailure>,
    /// The first load of each kind over the first network, with its waterfall.
    #[serde(skip)]
    pub first_loads: Vec<Load>,
}

/// Loads over one network.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Saving {
    /// Name of the network.
    pub network: String,
    /// Loads without the accelerator.
    pub direct: Times,
    /// Loads through a newly started accelerator.
    pub cold: ProxiedLoads,
    /// Loads through an accelerator through which another client has just loaded the page.
    pub warm: ProxiedLoads,
    /// Loads through an accelerator with the advice applied, as for `warm`; `None` if the configuration is as advised.
    pub advised: Option<ProxiedLoads>,
}

/// Loads through the accelerator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProxiedLoads {
    /// Times and connections.
    #[serde(flatten)]
    pub times: Times,
    /// Median saving over the run with the same seed without the accelerator. Negative if the load is later.
    pub saved_load_ms: f64,
    /// The saving as a part of the load time without it: 0.1 is 10 %.
    pub saved_part: f64,
}

/// A load that did not get its whole page.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadFailure {
    /// How the page was loaded: `direct`, `cold`, `warm` or `advised`.
    pub load: &'static str,
    /// The network.
    pub network: String,
    /// The first failure.
    pub reason: String,
    /// Number of further failures.
    pub more: usize,
}

/// A way to load the page.
struct LoadSetup<'a> {
    name: &'static str,
    page: &'a Page,
    accelerator: Accelerator,
}

impl AuditCase {
    /// Runs the audit. `on_done` is called after each load with the number of completed and of all loads. If it returns `Break` there
    /// is no result.
    ///
    /// # Errors
    ///
    /// The reason why an accelerator cannot serve the page.
    ///
    /// # Panics
    ///
    /// If a load panics, which is a fault of this program.
    pub fn audit(
        &self,
        threads: Option<NonZeroUsize>,
        mut on_done: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> Result<Option<Audit>, String> {
        let (graph, secure) = (PageGraph::of(&self.replica), self.protocol.is_secure());
        let written = self.operator.clone().unwrap_or_default();
        let (advice, advised) = self.advice(&graph, &written)?;
        let behind = |operator: OperatorConfig| {
            Page::with_graph(self.replica.clone(), graph.clone()).with_operator_config(operator)
        };
        let advised = behind(advised);
        let configured = self.operator.clone().map(behind);
        let page = configured.as_ref().unwrap_or(&advised);
        let survey = Survey::of(page, secure)?;
        let way = |name, page, accelerator| LoadSetup {
            name,
            page,
            accelerator,
        };
        let mut ways = vec![
            way("direct", page, Accelerator::Off),
            way("cold", page, Accelerator::Cold),
            way("warm", page, Accelerator::Warm),
        ];
        if configured.is_some() && !advice.is_empty() {
            ways.push(way("advised", &advised, Accelerator::Warm));
        }
        let runs = self.runs as usize;
        let total = self.networks.len() * ways.len() * runs;
        let work = |number: usize| {
            let (rest, run) = (number / runs, number % runs);
            let (network, way) = (rest / ways.len(), rest % ways.len());
            self.load(&self.networks[network], &ways[way], run)
        };
        let mut loads: Vec<Option<Load>> = vec![None; total];
        let mut done = 0;
        workers::each(total, threads, work, |number, load| {
            loads[number] = Some(load);
            done += 1;
            on_done(done, total)
        });
        let Some(loads) = loads.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let by_way: Vec<&[Load]> = loads.chunks(runs).collect();
        let by_network = || self.networks.iter().zip(by_way.chunks(ways.len()));
        let first_loads: Vec<Load> = by_way[..ways.len()]
            .iter()
            .map(|loads| loads[0].clone())
            .collect();
        let failures = by_network().flat_map(|(network, loads)| {
            let failed = ways.iter().zip(loads);
            failed.filter_map(|(way, loads)| failure(way.name, &network.name, loads))
        });
        Ok(Some(Audit {
            page: self.replica.name.clone(),
            host: head::authority(&self.replica.document().url),
            protocol: self.protocol.to_string(),
            runs: self.runs,
            is_configured: configured.is_some(),
            survey,
            advice,
            savings: by_network().map(|it| saving(&it.0.name, it.1)).collect(),
            failures: failures.collect(),
            first_loads,
        }))
    }

    /// The advice for an accelerator configured as `written`, and its configuration (see [`Advice::of`]). Hosts are left out one by one if
    /// only a part of their resources can be proxied, as long as the page is slower than without the accelerator over some network. A host
    /// that keeps most of its bytes is also left out if it saves little.
    fn advice(
        &self,
        graph: &PageGraph,
        written: &OperatorConfig,
    ) -> Result<(Advice, OperatorConfig), String> {
        let secure = self.protocol.is_secure();
        let mut best = Advice::of(&self.replica, graph, written, secure, BTreeSet::new())?;
        if self.operator.is_some() {
            return Ok(best);
        }
        let behind = |operator: &OperatorConfig| {
            let page = Page::with_graph(self.replica.clone(), graph.clone());
            page.with_operator_config(operator.clone())
        };
        let mut direct_ms = None;
        let mut least_saved = |page: &Page| {
            let load = |accelerator| {
                let way = LoadSetup {
                    name: "",
                    page,
                    accelerator,
                };
                let loads = self
                    .networks
                    .iter()
                    .map(|it| self.load(it, &way, 0).load_ms);
                loads.collect::<Vec<f64>>()
            };
            let direct_ms = direct_ms.get_or_insert_with(|| load(Accelerator::Off));
            let warm_ms = load(Accelerator::Warm);
            let parts = direct_ms
                .iter()
                .zip(warm_ms)
                .map(|(direct, warm)| 1.0 - warm / *direct);
            parts.fold(f64::INFINITY, f64::min)
        };
        loop {
            let page = behind(&best.1);
            let survey = Survey::of(&page, secure)?;
            let is_part = |host: &&Host| !host.is_own && host.proxied > 0 && host.direct > 0;
            let parts: Vec<_> = survey.hosts.iter().filter(is_part).collect();
            if parts.is_empty() {
                return Ok(best);
            }
            let saved = least_saved(&page);
            let is_slower = saved < -SLOWER;
            let (mut better, mut best_gain) = (None, 0.0);
            for host in parts {
                let keeps_most = host.keeps_most_bytes();
                if !is_slower && !keeps_most {
                    continue;
                }
                let mut left_out = best.0.left_out.clone();
                left_out.insert(host.host.clone());
                let without = Advice::of(&self.replica, graph, written, secure, left_out)?;
                let least_saved_by_host = if keeps_most { LEAST_SAVED } else { 0.0 };
                let gain = least_saved(&behind(&without.1)) - saved + least_saved_by_host;
                if gain > best_gain {
                    (better, best_gain) = (Some(without), gain);
                }
            }
            match better {
                Some(better) => best = better,
                None => return Ok(best),
            }
        }
    }

    fn load(&self, network: &RaceNetwork, way: &LoadSetup<'_>, run: usize) -> Load {
        let mut options = self.options.clone();
        options.accelerator = way.accelerator;
        if way.accelerator != Accelerator::Off {
            options.push = match self.learn.push {
                true => options.push.max(Push::ByGraph),
                false => Push::No,
            };
            options.hints = self.learn.early_hints;
            options.prefetch &= self.learn.prefetch;
        }
        let seed = self.seed.wrapping_add(run as u64);
        let config = network.config(&options);
        let load = load::load(
            way.page,
            self.protocol,
            &network.name,
            &config,
            &options,
            seed,
        );
        Load {
            // Only the first loads are drawn.
            waterfall: match run {
                0 => load.waterfall,
                _ => Vec::new(),
            },
            ..load
        }
    }
}

fn saving(network: &str, ways: &[&[Load]]) -> Saving {
    let direct = ways[0];
    let through = |loads: &[Load]| {
        let pairs = direct.iter().zip(loads);
        let saved = pairs
            .clone()
            .map(|(direct, then)| direct.load_ms - then.load_ms);
        let parts = pairs.map(|(direct, then)| 1.0 - then.load_ms / direct.load_ms);
        ProxiedLoads {
            times: Times::of(loads),
            saved_load_ms: median(saved).unwrap_or_default(),
            saved_part: median(parts).unwrap_or_default(),
        }
    };
    Saving {
        network: network.to_owned(),
        direct: Times::of(direct),
        cold: through(ways[1]),
        warm: through(ways[2]),
        advised: ways.get(3).map(|loads| through(loads)),
    }
}

fn failure(load: &'static str, network: &str, loads: &[Load]) -> Option<LoadFailure> {
    let mut failures = loads.iter().flat_map(|load| &load.failures);
    let reason = failures.next()?.clone();
    Some(LoadFailure {
        load,
        network: network.to_owned(),
        reason,
        more: failures.count(),
    })
}
