//! Loads in pairs: the same pages over the same network with the same chance, by one way and by another.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::profile::Profile;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::head;
use spdy_page::replica::Replica;

use crate::browser;
use crate::claims::corpus::Corpus;
use crate::claims::measured::{MeasuredResult, Point};
use crate::hosts::folded;
use crate::measure::Load;
use crate::options::{Options, RaceProtocol};
use crate::page::Page;
use crate::race::RaceNetwork;
use crate::sim::seed;
use crate::stats::{Bootstrap, Estimate};
use crate::workers;

/// Pages that ship or are made.
pub(crate) type Pages = fn() -> Vec<Replica>;

/// Whose loads are measured.
pub(crate) enum PageSet {
    /// Pages of ours.
    Pages(Pages),
    /// Those of a corpus that the user names.
    Corpus,
}

/// How a page is loaded.
#[derive(Clone, Debug)]
pub(crate) struct ClaimSetup {
    pub(crate) protocol: RaceProtocol,
    /// Everything on the page's own host.
    pub(crate) folded: bool,
    pub(crate) options: Options,
}

/// Two ways, and what both have in common.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) profile: Profile,
    /// What is compared with.
    pub(crate) base: ClaimSetup,
    /// What is compared.
    pub(crate) other: ClaimSetup,
    /// Resources that wait for one another: above 1, the page's resources come in so many generations, each known when
    /// the first of the one before is there.
    pub(crate) depth: usize,
    /// Of several pages only the smaller half, by the bytes of their bodies.
    pub(crate) small_pages: bool,
    /// Time of the browser itself, added to each load.
    pub(crate) browser_ms: f64,
    /// Only the first and the last level of a row: enough to see what a factor does.
    pub(crate) ends_only: bool,
}

impl Setting {
    /// `network` (as `spdy race --network` reads it), one protocol against another, `options` for both.
    ///
    /// # Panics
    ///
    /// If there is no such network: claims name their own.
    pub(crate) fn new(
        network: &str,
        (base, other): (RaceProtocol, RaceProtocol),
        options: &Options,
    ) -> Self {
        let way = |protocol| ClaimSetup {
            protocol,
            folded: false,
            options: options.clone(),
        };
        Self {
            profile: profile(network),
            base: way(base),
            other: way(other),
            depth: 1,
            small_pages: false,
            browser_ms: 0.0,
            ends_only: false,
        }
    }

    /// Changes the choices of both ways.
    pub(crate) fn both(&mut self, change: impl Fn(&mut Options)) {
        change(&mut self.base.options);
        change(&mut self.other.options);
    }

    /// Whether anything is left to chance.
    fn has_chance(&self) -> bool {
        let path = &self.profile.path;
        let lossless =
            path.loss_up == LossModel::default() && path.loss_down == LossModel::default();
        !lossless || !path.jitter.is_zero()
    }

    /// This setting once for each of `levels`, or for the first and the last of them; and their names.
    pub(crate) fn levels<T: Copy>(
        &self,
        levels: &[T],
        name: impl Fn(T) -> String,
        change: impl Fn(&mut Self, T),
    ) -> (Vec<String>, Vec<Self>) {
        let ends = [levels[0], levels[levels.len() - 1]];
        let levels = if self.ends_only { &ends[..] } else { levels };
        let at = |&level: &T| {
            let mut setting = self.clone();
            change(&mut setting, level);
            (name(level), setting)
        };
        levels.iter().map(at).unzip()
    }

    /// Levels of loss, both ways, in parts of a thousand.
    pub(crate) fn losses(&self, permille: &[u32]) -> (Vec<String>, Vec<Self>) {
        self.levels(
            permille,
            |permille| format!("{} %", f64::from(permille) / 10.0),
            |it, permille| {
                let loss = Probability::from_ppb(permille * 1_000_000);
                let loss = LossModel::bernoulli(loss.expect("a part of one"));
                it.profile.path.loss_up = loss;
                it.profile.path.loss_down = loss;
            },
        )
    }
}

/// The network called `spec`.
pub(crate) fn profile(spec: &str) -> Profile {
    let parsed = RaceNetwork::parse(spec);
    let network = parsed.unwrap_or_else(|error| panic!("network {spec:?} of a claim: {error}"));
    network.profile
}

/// What a load came to, as far as claims speak of it; of several loads the means.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Figures {
    pub(crate) load_ms: f64,
    pub(crate) dom_content_loaded_ms: f64,
    pub(crate) time_on_wire_ms: f64,
    pub(crate) connections: f64,
    pub(crate) packets: f64,
    pub(crate) bytes: f64,
    pub(crate) bytes_up: f64,
    pub(crate) bytes_down: f64,
}

impl Figures {
    fn of(load: &Load, browser_ms: f64) -> Self {
        Self {
            load_ms: load.load_ms + browser_ms,
            dom_content_loaded_ms: load.dom_content_loaded_ms + browser_ms,
            time_on_wire_ms: load.time_on_wire_ms + browser_ms,
            connections: load.connections as f64,
            packets: (load.packets_up + load.packets_down) as f64,
            bytes: (load.bytes_up + load.bytes_down) as f64,
            bytes_up: load.bytes_up as f64,
            bytes_down: load.bytes_down as f64,
        }
    }

    fn mean(all: &[Self]) -> Self {
        let mean = |of: fn(&Self) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        Self {
            load_ms: mean(|it| it.load_ms),
            dom_content_loaded_ms: mean(|it| it.dom_content_loaded_ms),
            time_on_wire_ms: mean(|it| it.time_on_wire_ms),
            connections: mean(|it| it.connections),
            packets: mean(|it| it.packets),
            bytes: mean(|it| it.bytes),
            bytes_up: mean(|it| it.bytes_up),
            bytes_down: mean(|it| it.bytes_down),
        }
    }
}

/// One page, or one run of the only page, by both ways.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FigurePair {
    pub(crate) base: Figures,
    pub(crate) other: Figures,
}

/// Pairs for each setting; the same page or run at the same place of each.
pub(crate) struct PairedLoads {
    pub(crate) rows: Vec<Vec<FigurePair>>,
    loads: usize,
    left_out: usize,
}

impl PairedLoads {
    /// `statistic` of each row, with intervals by drawing pages (or runs).
    ///
    /// # Errors
    ///
    /// No page came whole by both ways, or there is no figure.
    pub(crate) fn measured(
        &self,
        levels: Vec<String>,
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let places: Vec<usize> = (0..self.rows[0].len()).collect();
        let at = |row: &[FigurePair], places: &[usize]| {
            let drawn: Vec<FigurePair> = places.iter().map(|&place| row[place]).collect();
            statistic(&drawn)
        };
        let nothing = || format!("none of {} loads came whole", self.loads);
        let mut points = Vec::new();
        for (level, row) in levels.into_iter().zip(&self.rows) {
            let estimate = Bootstrap::default().of(&places, |drawn| at(row, drawn));
            points.push(Point {
                level,
                estimate: estimate.ok_or_else(nothing)?,
            });
        }
        let rise = match &self.rows[..] {
            [first, .., last] => {
                Bootstrap::default().of(&places, |drawn| at(last, drawn) - at(first, drawn))
            }
            _ => None,
        };
        Ok(self.to_measured(points, rise))
    }

    /// A figure for each of two groups of rows, one pair a row: their intervals, and that of what lies between them, are of
    /// the rows that were drawn in each.
    ///
    /// # Errors
    ///
    /// As [`measured`](Self::measured).
    pub(crate) fn of_groups(
        &self,
        [low, high]: [(&str, &[usize]); 2],
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let group = |rows: &[usize]| -> Vec<FigurePair> {
            let rows = rows.iter().map(|&row| &self.rows[row]);
            rows.filter_map(|row| row.first().copied()).collect()
        };
        let nothing = || format!("none of {} loads came whole", self.loads);
        let (first, last) = (group(low.1), group(high.1));
        let point = |level: &str, pairs: &[FigurePair]| {
            let estimate = Bootstrap::default().of(pairs, &statistic);
            let level = level.to_owned();
            estimate.map(|estimate| Point { level, estimate })
        };
        let points = [point(low.0, &first), point(high.0, &last)];
        let points = points.into_iter().collect::<Option<Vec<_>>>();
        let rise = Bootstrap::default().of_two((&first, &last), |first, last| {
            statistic(last) - statistic(first)
        });
        Ok(self.to_measured(points.ok_or_else(nothing)?, rise))
    }

    /// One figure of all rows together, one pair each: its interval is of the rows that were drawn.
    ///
    /// # Errors
    ///
    /// As [`measured`](Self::measured).
    pub(crate) fn over_rows(
        &self,
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let firsts: Vec<FigurePair> = self
            .rows
            .iter()
            .filter_map(|row| row.first().copied())
            .collect();
        let estimate = Bootstrap::default().of(&firsts, statistic);
        let estimate =
            estimate.ok_or_else(|| format!("none of {} loads came whole", self.loads))?;
        let level = String::new();
        Ok(self.to_measured(vec![Point { level, estimate }], None))
    }

    /// One figure that has no interval of its own.
    pub(crate) fn exactly(&self, value: f64) -> MeasuredResult {
        let level = String::new();
        let estimate = Estimate::exact(value);
        self.to_measured(vec![Point { level, estimate }], None)
    }

    fn to_measured(&self, points: Vec<Point>, rise: Option<Estimate>) -> MeasuredResult {
        MeasuredResult {
            points,
            rise,
            loads: self.loads,
            left_out: self.left_out,
        }
    }
}

/// How much of the base's sum of `figure` the other way saves, percent, as in comparisons of means over pages.
pub(crate) fn saving(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    100.0 * (1.0 - ratio(pairs, figure))
}

/// The other way's sum of `figure` to the base's.
pub(crate) fn ratio(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    let sum =
        |of: fn(&FigurePair) -> &Figures| pairs.iter().map(|pair| figure(of(pair))).sum::<f64>();
    sum(|pair| &pair.other) / sum(|pair| &pair.base)
}

/// By how much more of `figure` the other way has than the base, percent, by the sums.
pub(crate) fn change(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    100.0 * (ratio(pairs, figure) - 1.0)
}

/// Geometric mean of the ratios of load times.
pub(crate) fn geometric_mean(pairs: &[FigurePair]) -> f64 {
    geometric_mean_of(pairs, |it| it.load_ms)
}

/// Geometric mean of the ratios of `figure`.
pub(crate) fn geometric_mean_of(pairs: &[FigurePair], figure: fn(&Figures) -> f64) -> f64 {
    let logs = pairs
        .iter()
        .map(|pair| (figure(&pair.other) / figure(&pair.base)).ln());
    (logs.sum::<f64>() / pairs.len() as f64).exp()
}

/// Where claims are put to the test.
pub struct ClaimRunner<'a> {
    /// Loads of a page where chance plays a part; without chance one load is enough.
    pub runs: u32,
    /// Threads; `None` for one a core.
    pub threads: Option<NonZeroUsize>,
    /// Pages of the user's.
    pub corpus: Option<&'a Corpus>,
    /// Whether to go without factors, and over every eighth page of the corpus: to see that it works.
    pub quick: bool,
    /// Called with the number of loads done since the last call.
    pub on_loads: &'a dyn Fn(u64),
}

impl ClaimRunner<'_> {
    /// Default number of loads of a page; also that of `docs/measurements/claims.md`.
    pub const RUNS: u32 = 3;

    /// The pages of `subjects`.
    ///
    /// # Errors
    ///
    /// There is no corpus, or nothing in it.
    pub(crate) fn pages(&self, subjects: &PageSet) -> Result<Vec<Replica>, String> {
        match subjects {
            PageSet::Pages(pages) => Ok(pages()),
            PageSet::Corpus => {
                let corpus = self.corpus()?;
                let step = if self.quick { 8 } else { 1 };
                Ok(corpus.pages().iter().step_by(step).cloned().collect())
            }
        }
    }

    /// The corpus.
    ///
    /// # Errors
    ///
    /// There is none.
    pub(crate) fn corpus(&self) -> Result<&Corpus, String> {
        self.corpus.ok_or_else(|| "no corpus given".to_owned())
    }

    /// One figure over all pages under one setting.
    ///
    /// # Errors
    ///
    /// As [`pairs`](Self::pairs) and [`PairedLoads::measured`].
    pub(crate) fn one(
        &self,
        subjects: &PageSet,
        setting: &Setting,
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let paired = self.load_pairs(subjects, std::slice::from_ref(setting))?;
        paired.measured(vec![String::new()], statistic)
    }

    /// Loads every page under every setting by both ways.
    ///
    /// # Errors
    ///
    /// As [`pages`](Self::pages).
    pub(crate) fn load_pairs(
        &self,
        subjects: &PageSet,
        settings: &[Setting],
    ) -> Result<PairedLoads, String> {
        let mut replicas = self.pages(subjects)?;
        if settings.iter().any(|setting| setting.small_pages) {
            keep_smaller_half(&mut replicas);
        }
        let chance = settings.iter().any(Setting::has_chance);
        let runs = if chance { self.runs as usize } else { 1 };
        let mut ready: BTreeMap<(usize, bool, usize), Page> = BTreeMap::new();
        for setting in settings {
            for way in [&setting.base, &setting.other] {
                for (index, replica) in replicas.iter().enumerate() {
                    ready
                        .entry((index, way.folded, setting.depth))
                        .or_insert_with(|| page(replica, way.folded, setting.depth));
                }
            }
        }
        let total = settings.len() * replicas.len() * runs * 2;
        let work = |number: usize| {
            let (rest, is_other) = (number / 2, number % 2 == 1);
            let (rest, run) = (rest / runs, rest % runs);
            let (setting, index) = (&settings[rest / replicas.len()], rest % replicas.len());
            let way = if is_other {
                &setting.other
            } else {
                &setting.base
            };
            let network = RaceNetwork {
                name: String::new(),
                profile: setting.profile.clone(),
            };
            let load = browser::load(
                &ready[&(index, way.folded, setting.depth)],
                way.protocol,
                "",
                &network.config(&way.options),
                &way.options,
                seed::derive(1 + run as u64, &replicas[index].name),
            );
            let whole = load.failures.is_empty();
            whole.then(|| Figures::of(&load, setting.browser_ms))
        };
        let mut figures: Vec<Option<Figures>> = vec![None; total];
        workers::each(total, self.threads, work, |number, load| {
            figures[number] = load;
            (self.on_loads)(1);
            ControlFlow::Continue(())
        });
        Ok(paired(&figures, (settings.len(), replicas.len(), runs)))
    }
}

/// Ratio of load times for each of some pages, over a network without chance: each figure is exact, and so is what lies
/// between two.
///
/// # Errors
///
/// A load did not come whole.
pub(crate) fn ratio_by_page(
    bench: &ClaimRunner<'_>,
    pages: &[(&str, Pages)],
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let mut points = Vec::new();
    let (mut loads, mut left_out) = (0, 0);
    for (level, pages) in pages {
        let paired = bench.load_pairs(&PageSet::Pages(*pages), std::slice::from_ref(setting))?;
        let level = vec![(*level).to_owned()];
        let one = paired.measured(level, |pairs| ratio(pairs, |it| it.load_ms))?;
        (loads, left_out) = (loads + one.loads, left_out + one.left_out);
        points.extend(one.points);
    }
    let ends = points.first().zip(points.last());
    let rise = ends.map(|(first, last): (&Point, &Point)| {
        Estimate::exact(last.estimate.value - first.estimate.value)
    });
    Ok(MeasuredResult {
        points,
        rise,
        loads,
        left_out,
    })
}

/// Takes out the pages that are larger than the one in the middle.
fn keep_smaller_half(replicas: &mut Vec<Replica>) {
    let bytes = |it: &Replica| it.exchanges.iter().map(|it| it.body.len()).sum::<usize>();
    let mut sizes: Vec<usize> = replicas.iter().map(bytes).collect();
    sizes.sort_unstable();
    if let Some(&middle) = sizes.get(sizes.len().saturating_sub(1) / 2) {
        replicas.retain(|it| bytes(it) <= middle);
    }
}

/// Puts loads together in pairs: a page's means over its runs, or each run of the only page. What is not whole under
/// one setting is left out under all.
fn paired(
    figures: &[Option<Figures>],
    (settings, pages, runs): (usize, usize, usize),
) -> PairedLoads {
    let at = |setting: usize, page: usize, run: usize| {
        let first = ((setting * pages + page) * runs + run) * 2;
        Some(FigurePair {
            base: figures[first]?,
            other: figures[first + 1]?,
        })
    };
    let mut rows = vec![Vec::new(); settings];
    let mut left_out = 0;
    for page in 0..pages {
        let mut by_run: Vec<Vec<FigurePair>> = Vec::new();
        for run in 0..runs {
            let pairs: Option<Vec<FigurePair>> = (0..settings)
                .map(|setting| at(setting, page, run))
                .collect();
            match pairs {
                Some(pairs) => by_run.push(pairs),
                None => left_out += 1,
            }
        }
        for (setting, row) in rows.iter_mut().enumerate() {
            let runs = by_run.iter().map(|pairs| pairs[setting]);
            if pages == 1 {
                row.extend(runs);
            } else if !by_run.is_empty() {
                let (base, other): (Vec<_>, Vec<_>) =
                    runs.map(|pair| (pair.base, pair.other)).unzip();
                row.push(FigurePair {
                    base: Figures::mean(&base),
                    other: Figures::mean(&other),
                });
            }
        }
    }
    PairedLoads {
        rows,
        loads: figures.len(),
        left_out,
    }
}

/// `replica` made ready, on one host if wanted, in so many generations.
fn page(replica: &Replica, fold: bool, depth: usize) -> Page {
    let mut graph = PageGraph::of(replica);
    if depth > 1 {
        deepen(&mut graph, depth);
    }
    if !fold {
        return Page::with_graph(replica.clone(), graph);
    }
    let own = head::authority(&replica.document().url);
    let foreign: Vec<String> = replica
        .hosts()
        .into_iter()
        .filter(|host| *host != own)
        .collect();
    Page::with_graph(folded(replica, &foreign), graph)
}

/// Cuts what the page fetches into `depth` generations, each known when the first of the one before is there. Redirects
/// and what they lead to stay where they are.
fn deepen(graph: &mut PageGraph, depth: usize) {
    let redirected = |node: &spdy_page::graph::Node| {
        node.parent()
            .is_some_and(|parent| graph.nodes[parent].is_redirect)
    };
    let movable: Vec<usize> = (0..graph.nodes.len())
        .filter(|&index| {
            let node = &graph.nodes[index];
            !node.is_redirect && node.parent().is_some() && !redirected(node)
        })
        .collect();
    let size = movable.len().div_ceil(depth).max(1);
    let mut before = None;
    for generation in movable.chunks(size) {
        if let Some(parent) = before {
            for &index in generation {
                graph.nodes[index].trigger = Trigger::Done { parent };
                graph.nodes[index].blocks_parser_at = None;
            }
        }
        before = Some(generation[0]);
    }
}
