//! Times over a factor: a panel for each combination of the others, a line for each protocol.
//!
//! Numeric levels have their positions on the axis, and their marks are joined. Named levels are drawn side by side. A whisker is the 95
//! % interval of the median, if there are enough runs.

use super::data::{MedianTime, Moment, ReportData, Trial, VariedFactor};
use crate::drawing::figure::Figure;
use crate::drawing::letters::width;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{ProtocolStyle, ShapeStyle, TextStyle};
use crate::text::{Millis, TimeUnit, ticks};

const WIDTH: f64 = 340.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = 334.0;
const TOP: f64 = 20.0;
const BOTTOM: f64 = 186.0;
const HEIGHT: f64 = 218.0;

/// Ratio of the last level to the first from which the axis is logarithmic.
const LOGARITHMIC: f64 = 8.0;
/// Half of a mark.
const MARK: f64 = 2.6;
/// Units between the marks of two protocols at a named level.
pub(super) const MARK_OFFSET: f64 = 9.0;
/// The same at a numeric level, where whiskers would overlap.
const NUMERIC_MARK_OFFSET: f64 = 2.4;

/// Load times of `page` over `factor`.
pub(super) fn loads(data: &ReportData, page: &str, factor: &VariedFactor) -> Figure {
    let title = format!("Load time of {page} over {}", factor.name);
    let mut figure = Figure::new(&["load", "over", &factor.name, page], title, 3);
    figure.legend_of(&data.protocols);
    for (caption, trials) in data.panels(page, &[&factor.name]) {
        let caption = match &caption[..] {
            "" => page.to_owned(),
            caption => format!("{page}, {caption}"),
        };
        let mut panel = panel(data, factor, &trials, Moment::Load, &caption);
        panel.class = data.filter_classes(&trials, &[&factor.name]);
        figure.push(panel);
    }
    figure.balance();
    figure
}

/// DOMContentLoaded, load and time on wire side by side over `factor`: a row for each combination of the other factors.
pub(super) fn moments(data: &ReportData, page: &str, factor: &VariedFactor) -> Figure {
    let title = format!(
        "DOMContentLoaded, load and time on wire of {page} over {}",
        factor.name
    );
    let mut figure = Figure::new(&["moments", "over", &factor.name, page], title, 3);
    figure.legend_of(&data.protocols);
    for (caption, trials) in data.panels(page, &[&factor.name]) {
        for moment in Moment::ALL {
            let caption = match &caption[..] {
                "" => format!("{page}: {}", moment.name()),
                caption => format!("{page}, {caption}: {}", moment.name()),
            };
            let mut panel = panel(data, factor, &trials, moment, &caption);
            panel.class = data.filter_classes(&trials, &[&factor.name]);
            figure.push(panel);
        }
    }
    figure
}

/// The same three moments if no factor has two levels. The moments are then on the axis.
pub(super) fn single_level(data: &ReportData) -> Figure {
    let mut figure = Figure::new(&["moments"], "DOMContentLoaded, load and time on wire", 3);
    figure.legend_of(&data.protocols);
    let levels = (0..)
        .zip(Moment::ALL)
        .map(|(number, moment)| (moment.name().to_owned(), f64::from(number)));
    let axis = VariedFactor {
        name: String::new(),
        levels: levels.collect(),
        is_numeric: false,
    };
    for trial in &data.trials {
        let times = trial
            .cells
            .iter()
            .flat_map(|cell| Moment::ALL.map(|moment| cell.moment(moment)));
        let end = end(times);
        let mut panel = frame(&axis, "time", end);
        panel.caption.clone_from(&trial.page);
        panel.title = format!("Moments of {}", trial.page);
        for (number, protocol) in data.protocols.iter().enumerate() {
            let Some(cell) = trial.cell(protocol) else {
                continue;
            };
            let place = PlotArea::of(&axis, end, mark_offset(MARK_OFFSET, number, data));
            for (moment, (level, x)) in Moment::ALL.into_iter().zip(&axis.levels) {
                if let Some(time) = cell.moment(moment) {
                    place.mark(&mut panel, protocol, level, *x, time);
                }
            }
        }
        figure.push(panel);
    }
    figure
}

/// The latest of `times`, which an axis must reach.
fn end(times: impl Iterator<Item = Option<MedianTime>>) -> f64 {
    let high = |time: MedianTime| time.interval.map_or(time.ms, |(_, high)| high.max(time.ms));
    times
        .flatten()
        .map(high)
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE)
}

/// Draws the axes and their marks.
pub(super) fn frame(factor: &VariedFactor, upright: &str, end: f64) -> Panel {
    let place = PlotArea::of(factor, end, 0.0);
    let unit = TimeUnit::of(end);
    let mut panel = Panel::new(WIDTH, HEIGHT);
    for mark in ticks(end) {
        let y = place.y(mark);
        panel.path(ShapeStyle::Grid, format!("M{LEFT} {y:.1}H{RIGHT}"), "");
        panel.text(TextStyle::Before, LEFT - 4.0, y, unit.format(mark));
    }
    let upright = format!("{upright} ({})", unit.symbol());
    panel.text(TextStyle::After, 0.0, 6.0, upright);
    for (level, number) in labelled(factor, &place) {
        let x = place.x(*number);
        panel.path(ShapeStyle::Grid, format!("M{x:.1} {BOTTOM}v3"), "");
        panel.text(TextStyle::Axis, x, BOTTOM + 11.0, level.clone());
    }
    let middle = f64::midpoint(LEFT, RIGHT);
    let name = match place.axis.is_logarithmic {
        true => format!("{} (log scale)", factor.name),
        false => factor.name.clone(),
    };
    panel.text(TextStyle::Axis, middle, HEIGHT - 7.0, name);
    panel
}

/// The levels with a label: the last, and the others whose labels do not overlap.
fn labelled<'a>(factor: &'a VariedFactor, place: &PlotArea) -> Vec<&'a (String, f64)> {
    let half = |level: &str| width(level, TextStyle::Axis.size()) / 2.0 + 2.0;
    let span = |(level, number): &(String, f64)| {
        let x = place.x(*number);
        (x - half(level), x + half(level))
    };
    let Some((last, others)) = factor.levels.split_last() else {
        return Vec::new();
    };
    let (before_last, mut free) = (span(last).0, f64::NEG_INFINITY);
    let mut labelled = Vec::new();
    for level in others {
        let (from, to) = span(level);
        if from >= free && to <= before_last {
            free = to;
            labelled.push(level);
        }
    }
    labelled.push(last);
    labelled
}

fn panel(
    data: &ReportData,
    factor: &VariedFactor,
    trials: &[&Trial],
    moment: Moment,
    caption: &str,
) -> Panel {
    let cells = trials.iter().flat_map(|trial| &trial.cells);
    let times = || cells.clone().map(|cell| cell.moment(moment));
    let end = end(times());
    let apart = match factor.is_numeric {
        false => MARK_OFFSET,
        true if times().flatten().any(|time| time.interval.is_some()) => NUMERIC_MARK_OFFSET,
        true => 0.0,
    };
    let mut panel = frame(factor, moment.name(), end);
    panel.caption = caption.to_owned();
    panel.title = format!("{} over {}: {caption}", moment.name(), factor.name);
    for (number, protocol) in data.protocols.iter().enumerate() {
        let place = PlotArea::of(factor, end, mark_offset(apart, number, data));
        let point = |(level, x): &(String, f64)| {
            let trial = trials
                .iter()
                .find(|trial| trial.level(&factor.name) == Some(level))?;
            Some((level.clone(), *x, trial.cell(protocol)?.moment(moment)?))
        };
        let points: Vec<_> = factor.levels.iter().filter_map(point).collect();
        if factor.is_numeric && points.len() > 1 {
            let joined: Vec<_> = points
                .iter()
                .map(|(_, x, time)| format!("{:.1} {:.1}", place.x(*x), place.y(time.ms)))
                .collect();
            let line = format!("M{}", joined.join("L"));
            panel.path(ShapeStyle::Line(ProtocolStyle::of(protocol)), line, "");
        }
        for (level, x, time) in points {
            place.mark(
                &mut panel,
                protocol,
                &format!("{} {level}", factor.name),
                x,
                time,
            );
        }
    }
    panel
}

/// Distance of a protocol's marks from their level, if levels are `apart` units apart.
pub(super) fn mark_offset(apart: f64, protocol: usize, data: &ReportData) -> f64 {
    (protocol as f64 - (data.protocols.len() - 1) as f64 / 2.0) * apart
}

/// Positions of levels and times.
pub(super) struct PlotArea {
    axis: Axis,
    end: f64,
    aside: f64,
}

impl PlotArea {
    pub(super) fn of(factor: &VariedFactor, end: f64, aside: f64) -> Self {
        Self {
            axis: Axis::of(factor),
            end,
            aside,
        }
    }

    pub(super) fn x(&self, number: f64) -> f64 {
        self.axis.x(number) + self.aside
    }

    pub(super) fn y(&self, ms: f64) -> f64 {
        BOTTOM - ms / self.end * (BOTTOM - TOP)
    }

    /// Draws one median with its whisker; `at` describes its position in words.
    pub(super) fn mark(
        &self,
        panel: &mut Panel,
        protocol: &str,
        at: &str,
        number: f64,
        time: MedianTime,
    ) {
        let (tone, x) = (ProtocolStyle::of(protocol), self.x(number));
        let mut about = format!("{protocol}, {at}: {} ms", Millis(time.ms));
        if let Some((low, high)) = time.interval {
            let (low_y, high_y, left) = (self.y(low), self.y(high), x - 2.5);
            let bar = format!(
                "M{x:.1} {low_y:.1}V{high_y:.1}M{left:.1} {low_y:.1}h5M{left:.1} {high_y:.1}h5"
            );
            panel.path(ShapeStyle::Whisker(tone), bar, "");
            about.push_str(&format!(" ({} to {})", Millis(low), Millis(high)));
        }
        panel.description.push_str(&about);
        panel.description.push('\n');
        let top = self.y(time.ms);
        if !self.axis.is_numeric {
            panel.rect(
                ShapeStyle::Pale(tone),
                [x - 3.0, top, 6.0, BOTTOM - top],
                "",
            );
        }
        panel.path(ShapeStyle::Mark(tone), tone.mark(x, top, MARK), about);
    }
}

/// Horizontal positions of levels.
struct Axis {
    first: f64,
    last: f64,
    is_numeric: bool,
    is_logarithmic: bool,
    /// Units that are left free at either end.
    inset: f64,
}

impl Axis {
    fn of(factor: &VariedFactor) -> Self {
        let ends = (factor.levels.first(), factor.levels.last());
        let (first, last) = match ends {
            (Some(first), Some(last)) => (first.1, last.1),
            _ => (0.0, 1.0),
        };
        let inset = match factor.is_numeric {
            true => 16.0,
            false => (RIGHT - LEFT) / factor.levels.len() as f64 / 2.0,
        };
        Self {
            first,
            last,
            is_numeric: factor.is_numeric,
            is_logarithmic: factor.is_numeric && first > 0.0 && last / first >= LOGARITHMIC,
            inset,
        }
    }

    fn x(&self, number: f64) -> f64 {
        let part = if self.is_logarithmic {
            (number / self.first).ln() / (self.last / self.first).ln()
        } else if self.last > self.first {
            (number - self.first) / (self.last - self.first)
        } else {
            0.5
        };
        let (left, right) = (LEFT + self.inset, RIGHT - self.inset);
        left + part * (right - left)
    }
}
