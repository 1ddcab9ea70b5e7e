//! Loads in pairs: the same pages over the same network with the same random numbers, for both sides of a setting.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::head;
use spdy_page::replica::Replica;
use spdy_sim::load;
use spdy_sim::load::{Page, folded};
use spdy_sim::race::RaceNetwork;
use spdy_sim::seed;
use spdy_sim::workers;

use crate::claims::corpus::Corpus;
use crate::claims::load_memo::{LoadKey, LoadMemo};
use crate::claims::measured::{MeasuredResult, Point};
use crate::claims::setting::{ClaimSetup, PageSet, Pages, Setting};
use crate::claims::statistics::{FigurePair, Figures, PairedLoads, ratio};
use crate::stats::Estimate;

/// Measures claims.
pub struct ClaimRunner<'a> {
    /// Loads of a page if there is randomness; without it one load is enough.
    pub runs: u32,
    /// Threads; `None` for one per core.
    pub threads: Option<NonZeroUsize>,
    /// Pages of the user.
    pub corpus: Option<&'a Corpus>,
    /// True to omit factors, and to use every eighth page of the corpus, as a quick check.
    pub quick: bool,
    /// Called with the number of loads done since the last call.
    pub on_loads: &'a dyn Fn(u64),
    /// Loads that it has measured; empty at first.
    pub memo: LoadMemo,
}

impl ClaimRunner<'_> {
    /// Default number of loads of a page; also that of `docs/measurements/claims.md`.
    pub const RUNS: u32 = 3;

    /// The pages of `subjects`.
    ///
    /// # Errors
    ///
    /// There is no corpus, or it has no pages.
    pub(crate) fn pages(&self, subjects: &PageSet) -> Result<Vec<Replica>, String> {
        match subjects {
            PageSet::Pages(pages) | PageSet::Fitted(pages) | PageSet::StandIn(pages) => Ok(pages()),
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
        self.corpus
            .ok_or_else(|| "no corpus: use --corpus".to_owned())
    }

    /// Measures one figure over all pages with one setting.
    ///
    /// # Errors
    ///
    /// Like [`load_pairs`](Self::load_pairs) and [`PairedLoads::measured`].
    pub(crate) fn one(
        &self,
        subjects: &PageSet,
        setting: &Setting,
        statistic: impl Fn(&[FigurePair]) -> f64,
    ) -> Result<MeasuredResult, String> {
        let paired = self.load_pairs(subjects, std::slice::from_ref(setting))?;
        paired.measured(vec![String::new()], statistic)
    }

    /// Loads every page with both sides of every setting.
    ///
    /// # Errors
    ///
    /// Like [`pages`](Self::pages).
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
        let total = settings.len() * replicas.len() * runs * 2;
        let mut memo = self.memo.lock();
        let pages: Vec<usize> = replicas.iter().map(|it| memo.page(it)).collect();
        let cells: Vec<Cell<'_>> = (0..total)
            .map(|number| {
                let (rest, is_other) = (number / 2, number % 2 == 1);
                let (rest, run) = (rest / runs, rest % runs);
                let (setting, index) = (&settings[rest / replicas.len()], rest % replicas.len());
                let setup = match is_other {
                    true => &setting.other,
                    false => &setting.base,
                };
                let key = LoadKey {
                    page: pages[index],
                    depth: setting.depth,
                    run,
                    setup,
                    profile: &setting.profile,
                };
                Cell {
                    load: memo.number(&key),
                    key,
                    replica: &replicas[index],
                    browser_ms: setting.browser_ms,
                }
            })
            .collect();
        let new: BTreeMap<usize, &Cell<'_>> = cells
            .iter()
            .filter(|cell| memo.figures(cell.load).is_none())
            .map(|cell| (cell.load, cell))
            .collect();
        let new: Vec<&Cell<'_>> = new.into_values().collect();
        let mut ready: BTreeMap<(usize, bool, usize), Page> = BTreeMap::new();
        for cell in &new {
            let (folded, depth) = (cell.key.setup.folded, cell.key.depth);
            ready
                .entry(cell.page())
                .or_insert_with(|| page(cell.replica, folded, depth));
        }
        (self.on_loads)((total - new.len()) as u64);
        let work = |number: usize| new[number].load(&ready[&new[number].page()]);
        workers::each(new.len(), self.threads, work, |number, figures| {
            memo.insert(new[number].load, figures);
            (self.on_loads)(1);
            ControlFlow::Continue(())
        });
        let figures: Vec<Option<Figures>> = cells
            .iter()
            .map(|cell| {
                let figures = memo.figures(cell.load).flatten();
                figures.map(|figures| figures.with_browser(cell.browser_ms))
            })
            .collect();
        Ok(paired(&figures, (settings.len(), replicas.len(), runs)))
    }
}

/// A load of a claim.
struct Cell<'a> {
    key: LoadKey<'a>,
    /// Its number in the memo.
    load: usize,
    replica: &'a Replica,
    browser_ms: f64,
}

impl Cell<'_> {
    /// The prepared page that it needs: page, whether all is on one host, and depth.
    fn page(&self) -> (usize, bool, usize) {
        (self.key.page, self.key.setup.folded, self.key.depth)
    }

    /// Loads `page`. Returns no figures if the load is incomplete.
    fn load(&self, page: &Page) -> Option<Figures> {
        let ClaimSetup {
            protocol, options, ..
        } = self.key.setup;
        let network = RaceNetwork {
            name: String::new(),
            profile: self.key.profile.clone(),
        };
        let seed = seed::derive(1 + self.key.run as u64, &self.replica.name);
        let load = load::load(page, *protocol, "", &network.config(options), options, seed);
        load.failures.is_empty().then(|| Figures::of(&load))
    }
}

/// Ratio of load times for each page, over a network without randomness: each figure and each difference is exact.
///
/// # Errors
///
/// A load is incomplete.
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

/// Removes the pages that are larger than the median.
fn keep_smaller_half(replicas: &mut Vec<Replica>) {
    let bytes = |it: &Replica| it.exchanges.iter().map(|it| it.body.len()).sum::<usize>();
    let mut sizes: Vec<usize> = replicas.iter().map(bytes).collect();
    sizes.sort_unstable();
    if let Some(&middle) = sizes.get(sizes.len().saturating_sub(1) / 2) {
        replicas.retain(|it| bytes(it) <= middle);
    }
}

/// Groups loads in pairs: a page's means over its runs, or each run of the only page. A pair that is incomplete with one setting is
/// omitted for all.
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

/// `replica` prepared for loads, on one host if `fold`, in `depth` generations.
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

/// Divides the resources of the page into `depth` generations, each discovered when the first of the previous one has arrived.
/// Redirects and their targets stay as they are.
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
