//! Shares of trials that are loaded by a time, and that have at most a ratio: a line for each protocol.

use spdy_lab::stats::median;

use super::data::ReportData;
use crate::drawing::figure::Figure;
use crate::drawing::letters::width;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{ProtocolStyle, ShapeStyle, TextStyle};
use crate::text::{Millis, TimeUnit};

const WIDTH: f64 = 340.0;
const LEFT: f64 = 38.0;
const RIGHT: f64 = 330.0;
/// Space between a label and the right end: on narrow screens some labels are wider than estimated.
const LABEL_MARGIN: f64 = 3.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 168.0;
const HEIGHT: f64 = 204.0;

/// The quantity on the horizontal axis.
enum AxisQuantity<'a> {
    LoadTime,
    /// The ratio of load times to this protocol.
    RatioTo(&'a str),
}

impl AxisQuantity<'_> {
    /// The name of an axis that ends at `most`.
    fn name(&self, most: f64) -> String {
        match self {
            Self::LoadTime => format!("load time ({}, log scale)", TimeUnit::of(most).symbol()),
            Self::RatioTo(protocol) => format!("load time / {protocol} (log scale)"),
        }
    }

    fn label(&self, value: f64, most: f64) -> String {
        match self {
            Self::LoadTime => TimeUnit::of(most).format(value),
            Self::RatioTo(_) => format!("×{value}"),
        }
    }
}

/// Values of each protocol, in rising order.
type SortedValues<'a> = Vec<(&'a str, Vec<f64>)>;

/// Load times: a panel for each page.
pub(super) fn times(data: &ReportData) -> Figure {
    let mut figure = Figure::new(&["cdf", "load"], "Distribution of load times", 3);
    figure.legend_of(&data.protocols);
    for page in &data.pages {
        let of = |protocol: &str| {
            let trials = data.new_of(protocol).filter(|trial| trial.page == *page);
            let cells = trials.filter_map(|trial| trial.cell(protocol));
            cells.map(|cell| cell.load.ms).collect()
        };
        let values = sorted(data.protocols.iter().map(|name| (&name[..], of(name))));
        let middle = |ms: f64| format!("half by {} ms", Millis(ms));
        figure
            .panels
            .extend(panel(&values, page, middle, &AxisQuantity::LoadTime));
    }
    figure.balance();
    figure
}

/// Ratios to the first protocol, over all pages and by page.
pub(super) fn ratios(data: &ReportData) -> Figure {
    let title = format!("Distribution of the ratios to {}", data.reference());
    let mut figure = Figure::new(&["cdf", "ratio"], title, 3);
    figure.legend_of(data.protocols.iter().skip(1));
    let all = (data.pages.len() > 1).then_some((None, "all pages"));
    let each = data.pages.iter().map(|page| (Some(page), &page[..]));
    for (page, name) in all.into_iter().chain(each) {
        let of = |protocol: &str| {
            let is_of = |of: &&super::data::Trial| page.is_none_or(|page| of.page == *page);
            let trials = data.new_of(protocol).filter(is_of);
            trials
                .filter_map(|trial| trial.ratio(protocol, data.reference()))
                .collect()
        };
        let others = data.protocols.iter().skip(1);
        let values = sorted(others.map(|name| (&name[..], of(name))));
        let axis = AxisQuantity::RatioTo(data.reference());
        let middle = |ratio: f64| format!("half at most ×{ratio:.2}");
        figure.panels.extend(panel(&values, name, middle, &axis));
    }
    figure.balance();
    figure
}

fn sorted<'a>(values: impl Iterator<Item = (&'a str, Vec<f64>)>) -> SortedValues<'a> {
    let sort = |(name, mut values): (&'a str, Vec<f64>)| {
        values.retain(|value| *value > 0.0);
        values.sort_by(f64::total_cmp);
        (name, values)
    };
    values.map(sort).collect()
}

/// Returns `None` if the values do not differ.
fn panel(
    values: &SortedValues<'_>,
    caption: &str,
    middle: impl Fn(f64) -> String,
    axis: &AxisQuantity<'_>,
) -> Option<Panel> {
    let all = || values.iter().flat_map(|(_, values)| values).copied();
    let (least, most) = (
        all().fold(f64::INFINITY, f64::min),
        all().fold(0.0, f64::max),
    );
    if least >= most {
        return None;
    }
    let x = |value: f64| LEFT + (value / least).ln() / (most / least).ln() * (RIGHT - LEFT);
    let y = |part: f64| BOTTOM - part * (BOTTOM - TOP);
    let mut panel = Panel::new(WIDTH, HEIGHT);
    panel.caption = caption.to_owned();
    let axis_name = axis.name(most);
    panel.title = format!("Distribution of {axis_name}: {caption}");
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        panel.path(
            ShapeStyle::Grid,
            format!("M{LEFT} {:.1}H{RIGHT}", y(part)),
            "",
        );
        let percent = format!("{}\u{202f}%", part * 100.0);
        panel.text(TextStyle::Before, LEFT - 4.0, y(part), percent);
    }
    for (value, label) in marks(least, most, x, |value| axis.label(value, most)) {
        panel.path(
            ShapeStyle::Grid,
            format!("M{:.1} {TOP}V{BOTTOM}", x(value)),
            "",
        );
        // A label at the right end would be cut.
        let half = width(&label, TextStyle::Axis.size()) / 2.0;
        panel.text(
            TextStyle::Axis,
            x(value).min(WIDTH - half - LABEL_MARGIN),
            BOTTOM + 11.0,
            label,
        );
    }
    panel.text(
        TextStyle::Axis,
        f64::midpoint(LEFT, RIGHT),
        HEIGHT - 8.0,
        axis_name,
    );
    for (protocol, values) in values.iter().filter(|(_, values)| !values.is_empty()) {
        let half = median(values.iter().copied()).unwrap_or_default();
        let about = format!("{protocol}: {}", middle(half));
        let mut path = format!("M{LEFT} {BOTTOM}");
        for (at, value) in values.iter().enumerate() {
            let part = (at as f64 + 1.0) / values.len() as f64;
            path.push_str(&format!("H{:.1}V{:.1}", x(*value), y(part)));
        }
        path.push_str(&format!("H{RIGHT}"));
        panel.description.push_str(&about);
        panel.description.push('\n');
        panel.path(ShapeStyle::Line(ProtocolStyle::of(protocol)), path, about);
    }
    Some(panel)
}

/// Round numbers between `low` and `high` with labels that do not overlap; both ends if there are none.
fn marks(
    least: f64,
    most: f64,
    x: impl Fn(f64) -> f64,
    label: impl Fn(f64) -> String,
) -> Vec<(f64, String)> {
    let half = |label: &str| width(label, TextStyle::Axis.size()) / 2.0 + 1.0;
    let between = |factors: &[f64]| -> Vec<(f64, String)> {
        let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
        let all = powers.flat_map(|power| {
            let at = move |factor: &f64| (factor * 10_f64.powi(power) * 1e9).round() / 1e9;
            factors.iter().map(at).collect::<Vec<_>>()
        });
        all.filter(|mark| (least..=most).contains(mark))
            .map(|mark| (mark, label(mark)))
            .filter(|(mark, label)| x(*mark) + half(label) <= WIDTH)
            .collect()
    };
    let candidates = [
        &[
            1.0, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0,
        ][..],
        &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0],
        &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        &[1.0, 2.0, 5.0],
        &[1.0],
    ];
    let is_free =
        |pair: &[(f64, String)]| x(pair[1].0) - x(pair[0].0) >= half(&pair[0].1) + half(&pair[1].1);
    let stand_free = |marks: &Vec<(f64, String)>| marks.len() >= 2 && marks.windows(2).all(is_free);
    let found = candidates.into_iter().map(between).find(stand_free);
    found.unwrap_or_else(|| {
        [least, most]
            .map(|end| (end, label(three_digits(end))))
            .to_vec()
    })
}

/// `value` with three significant digits.
fn three_digits(value: f64) -> f64 {
    let scale = 10_f64.powi(2 - value.log10().floor() as i32);
    (value * scale).round() / scale
}
