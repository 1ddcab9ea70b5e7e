//! Each trial as a dot: its load time by the first protocol on the x axis, by another on the y axis. Below the midline the other
//! protocol is faster. (Belshe's chart of 2011.)

use super::data::ReportData;
use crate::drawing::figure::Figure;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{ProtocolStyle, ShapeStyle, TextStyle};
use crate::text::{Millis, TimeUnit};

const WIDTH: f64 = 320.0;
const HEIGHT: f64 = 304.0;
const LEFT: f64 = 52.0;
const RIGHT: f64 = 312.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 268.0;
/// Half of a mark.
const MARK: f64 = 2.6;
/// Axes that span more than this factor have marks at powers of ten only.
const WIDE: f64 = 120.0;

/// A panel for each protocol but the first.
pub(super) fn against_first(data: &ReportData) -> Figure {
    let reference = data.reference();
    let title = format!("Load times of each trial against {reference}");
    let mut figure = Figure::new(
        &["scatter"],
        title,
        3.min(data.protocols.len().saturating_sub(1)),
    );
    let times = || {
        let cells = data.trials.iter().flat_map(|trial| &trial.cells);
        cells.map(|cell| cell.load.ms).filter(|ms| *ms > 0.0)
    };
    let least = times().fold(f64::INFINITY, f64::min);
    let most = times().fold(0.0, f64::max);
    if most <= 0.0 {
        return figure;
    }
    let scale = Scale::around(least, most);
    for protocol in data.protocols.iter().skip(1) {
        figure.push(panel(data, protocol, &scale));
    }
    figure.balance();
    figure.legend = vec![(ShapeStyle::Midline, "as fast as the other".to_owned())];
    figure
}

/// Both axes: logarithmic, and the same.
struct Scale {
    first: f64,
    last: f64,
    marks: Vec<f64>,
}

impl Scale {
    fn around(least: f64, most: f64) -> Self {
        let (first, last) = (least * 0.8, most * 1.25);
        let factors: &[f64] = match last / first > WIDE {
            true => &[1.0],
            false => &[1.0, 2.0, 5.0],
        };
        let powers = first.log10().floor() as i32..=last.log10().ceil() as i32;
        let marks = powers.flat_map(|power| {
            let of = move |factor: &f64| factor * 10_f64.powi(power);
            factors.iter().map(of)
        });
        let marks = marks.filter(|ms| (first..=last).contains(ms)).collect();
        Self { first, last, marks }
    }

    fn part(&self, ms: f64) -> f64 {
        (ms / self.first).ln() / (self.last / self.first).ln()
    }

    fn x(&self, ms: f64) -> f64 {
        LEFT + self.part(ms) * (RIGHT - LEFT)
    }

    fn y(&self, ms: f64) -> f64 {
        BOTTOM - self.part(ms) * (BOTTOM - TOP)
    }
}

fn panel(data: &ReportData, protocol: &str, scale: &Scale) -> Panel {
    let reference = data.reference();
    let dots: Vec<_> = data
        .new_of(protocol)
        .filter_map(|trial| Some((trial, trial.cell(reference)?, trial.cell(protocol)?)))
        .filter(|(_, a, b)| a.load.ms > 0.0 && b.load.ms > 0.0)
        .collect();
    let faster = dots
        .iter()
        .filter(|(_, a, b)| b.load.ms < a.load.ms)
        .count();
    let mut panel = Panel::new(WIDTH, HEIGHT);
    panel.caption = format!(
        "{protocol} against {reference}: faster in {faster} of {}",
        dots.len()
    );
    panel.title = format!("{protocol} against {reference}");
    panel.description = format!(
        "One dot per trial; {protocol} is faster in {faster} of {}, below the midline.",
        dots.len()
    );
    let unit = TimeUnit::of(scale.last);
    for ms in &scale.marks {
        let label = unit.format(*ms);
        let (x, y) = (scale.x(*ms), scale.y(*ms));
        let lines = format!("M{x:.1} {TOP}V{BOTTOM}M{LEFT} {y:.1}H{RIGHT}");
        panel.path(ShapeStyle::Grid, lines, "");
        panel.text(TextStyle::Axis, x, BOTTOM + 10.0, label.clone());
        panel.text(TextStyle::Before, LEFT - 4.0, y, label);
    }
    panel.path(
        ShapeStyle::Midline,
        format!("M{LEFT} {BOTTOM}L{RIGHT} {TOP}"),
        "",
    );
    let tone = ProtocolStyle::of(protocol);
    let factors: Vec<_> = data.factors.iter().collect();
    for (trial, a, b) in dots {
        let about = format!(
            "{}, {}: {reference} {} ms, {protocol} {} ms",
            trial.page,
            trial.caption(&factors),
            Millis(a.load.ms),
            Millis(b.load.ms)
        );
        let mark = tone.mark(scale.x(a.load.ms), scale.y(b.load.ms), MARK);
        panel.classed_group(data.filter.classes(trial, &[]), about, |panel| {
            panel.path(ShapeStyle::Faint(tone), mark, "");
        });
    }
    let [across, up] = [reference, protocol]
        .map(|name| format!("load time by {name} ({}, log scale)", unit.symbol()));
    panel.text(
        TextStyle::Axis,
        f64::midpoint(LEFT, RIGHT),
        HEIGHT - 9.0,
        across,
    );
    panel.vertical_text(7.0, f64::midpoint(TOP, BOTTOM), up);
    panel
}
