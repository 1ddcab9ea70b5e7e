//! Lulic's cells, and the measurements over them.

use std::ops::RangeInclusive;

use crate::claims::measured::MeasuredResult;
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting, profile};
use crate::claims::statistics::{FigurePair, Figures, geometric_mean, geometric_mean_of};
use crate::stats::Line;

const BANDWIDTHS: [u32; 7] = [100, 256, 512, 1024, 2048, 5120, 10_240];
const DELAYS: [u32; 6] = [10, 50, 100, 200, 250, 500];

/// `setting` in one of Lulic's cells.
fn cell(setting: &Setting, bandwidth: u32, delay: u32) -> Setting {
    Setting {
        profile: profile(&format!("lulic:{bandwidth}kbit:{delay}ms")),
        ..setting.clone()
    }
}

/// Geometric mean of the ratios of all 42 cells.
pub(super) fn grid(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    cells(bench, pages, setting, geometric_mean)
}

/// Cells in which the other side is faster, percent.
pub(super) fn wins(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    cells(bench, pages, setting, |pairs| {
        let won = pairs.iter().filter(|it| it.other.load_ms < it.base.load_ms);
        100.0 * won.count() as f64 / pairs.len() as f64
    })
}

/// Bandwidths and delays of all cells.
fn labels() -> impl Iterator<Item = (u32, u32)> {
    let delays = |bandwidth| DELAYS.into_iter().map(move |delay| (bandwidth, delay));
    BANDWIDTHS.into_iter().flat_map(delays)
}

fn cells(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
    statistic: fn(&[FigurePair]) -> f64,
) -> Result<MeasuredResult, String> {
    let cells = labels().map(|(bandwidth, delay)| cell(setting, bandwidth, delay));
    let cells: Vec<Setting> = cells.collect();
    bench.load_pairs(pages, &cells)?.over_rows(statistic)
}

/// The ratio in the cells that `is_low` selects, and in those that `is_high` selects.
fn two_ends(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
    (low, is_low): (&str, fn(u32, u32) -> bool),
    (high, is_high): (&str, fn(u32, u32) -> bool),
) -> Result<MeasuredResult, String> {
    let labels: Vec<_> = labels()
        .filter(|&(bandwidth, delay)| is_low(bandwidth, delay) || is_high(bandwidth, delay))
        .collect();
    let cells = labels
        .iter()
        .map(|&(bandwidth, delay)| cell(setting, bandwidth, delay));
    let paired = bench.load_pairs(pages, &cells.collect::<Vec<_>>())?;
    let group = |is_in: fn(u32, u32) -> bool| -> Vec<usize> {
        let all = labels.iter().enumerate();
        let those = all.filter(|&(_, &(bandwidth, delay))| is_in(bandwidth, delay));
        those.map(|(row, _)| row).collect()
    };
    let groups = [(low, &group(is_low)[..]), (high, &group(is_high)[..])];
    paired.of_groups(groups, geometric_mean)
}

/// The ratio up to 512 kbit/s, and from 5,120 kbit/s.
pub(super) fn by_bandwidth(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let low = (
        "to 512 kbit/s",
        (|bandwidth, _| bandwidth <= 512) as fn(u32, u32) -> bool,
    );
    let high = (
        "from 5,120 kbit/s",
        (|bandwidth, _| bandwidth >= 5_120) as fn(u32, u32) -> bool,
    );
    two_ends(bench, pages, setting, low, high)
}

/// The ratio up to a delay of 50 ms, and from 250 ms.
pub(super) fn by_delay(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let low = ("to 50 ms", (|_, delay| delay <= 50) as fn(u32, u32) -> bool);
    let high = (
        "from 250 ms",
        (|_, delay| delay >= 250) as fn(u32, u32) -> bool,
    );
    two_ends(bench, pages, setting, low, high)
}

/// Geometric mean of the ratios of DOMContentLoaded of all cells.
pub(super) fn grid_of_dom_content_loaded(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    cells(bench, pages, setting, |pairs| {
        geometric_mean_of(pairs, |it| it.dom_content_loaded_ms)
    })
}

/// Slope of load over the true round trip.
fn round_trips(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
    of: fn(&FigurePair) -> &Figures,
) -> Result<MeasuredResult, String> {
    const LABELS: RangeInclusive<u32> = 50..=250;
    let labels: Vec<u32> = DELAYS
        .into_iter()
        .filter(|it| LABELS.contains(it))
        .collect();
    let cells: Vec<_> = labels
        .iter()
        .map(|&delay| cell(setting, 10_240, delay))
        .collect();
    let paired = bench.load_pairs(pages, &cells)?;
    let points = labels.iter().zip(&paired.rows).filter_map(|(&label, row)| {
        row.first()
            .map(|pair| (f64::from(label) * 4.0, of(pair).load_ms))
    });
    let line = Line::fit(&points.collect::<Vec<_>>()).ok_or("too few loads are complete")?;
    Ok(paired.exactly(line.slope))
}

pub(super) fn trips_of_base(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    round_trips(bench, pages, setting, |pair| &pair.base)
}

pub(super) fn trips_of_other(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    round_trips(bench, pages, setting, |pair| &pair.other)
}

/// Load over HTTP at the highest bandwidth over that at a fifth of it, at the longest delay.
pub(super) fn knee(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let cells = [2048, 10_240].map(|bandwidth| cell(setting, bandwidth, 500));
    let paired = bench.load_pairs(pages, &cells)?;
    let [Some(narrow), Some(wide)] = [0, 1].map(|row: usize| paired.rows[row].first()) else {
        return Err("a load is incomplete".to_owned());
    };
    Ok(paired.exactly(wide.base.load_ms / narrow.base.load_ms))
}
