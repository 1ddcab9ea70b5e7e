//! Ratios over two factors: blue where the protocol is faster than the first, red where it is slower.

use super::data::{ReportData, Trial, VariedFactor};
use crate::drawing::figure::Figure;
use crate::drawing::letters::width;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{ShapeStyle, TextStyle};

const LEFT: f64 = 64.0;
const TOP: f64 = 16.0;
const COLUMN: f64 = 40.0;
const ROW: f64 = 22.0;
const AXIS: f64 = 32.0;
const MIN_WIDTH: f64 = 200.0;
const MAX_COLUMNS: usize = 4;

/// Ends of the colour scale: the smallest that covers all ratios is chosen. Its inverse is the other end.
const ENDS: [f64; 14] = [
    1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 50.0, 100.0, 1_000.0, 10_000.0,
];
/// Samples of the colour scale on either side of 1 in the legend.
const SAMPLES: u32 = 3;

/// The colours of ratios: equal steps for equal factors, without colour at 1. One scale for all heat maps of a report, so that the
/// same colour is the same ratio.
struct ColorScale {
    end: f64,
}

impl ColorScale {
    fn of(data: &ReportData) -> Self {
        let ratios = data.trials.iter().flat_map(|trial| {
            let others = data.protocols.iter().skip(1);
            others.filter_map(|protocol| trial.ratio(protocol, data.reference()))
        });
        let distances = ratios.filter(|ratio| *ratio > 0.0).map(|it| it.ln().abs());
        let largest = distances.fold(0.0, f64::max).exp();
        // The tolerance is for a ratio that is an end itself.
        let covers = |end: &f64| *end * (1.0 + 1e-9) >= largest;
        Self {
            end: ENDS.into_iter().find(covers).unwrap_or(largest),
        }
    }

    fn ink(&self, ratio: f64) -> ShapeStyle {
        let strength = (ratio.ln().abs() / self.end.ln()).min(1.0);
        if ratio < 1.0 {
            ShapeStyle::Good(strength)
        } else {
            ShapeStyle::Bad(strength)
        }
    }

    /// Samples with their ratios, from the fastest to the slowest.
    fn legend(&self) -> Vec<(ShapeStyle, String)> {
        let samples = -(SAMPLES as i32)..=SAMPLES as i32;
        let sample = |number: i32| {
            let ratio = self.end.powf(f64::from(number) / f64::from(SAMPLES));
            let name = match number {
                0 => "×1".to_owned(),
                _ if ratio >= 10.0 => format!("×{ratio:.0}"),
                _ if ratio < 0.1 => format!("×{ratio:.1e}"),
                _ => format!("×{ratio:.2}"),
            };
            (self.ink(ratio), name)
        };
        samples.map(sample).collect()
    }
}

/// Ratios of `page` for each protocol but the first, over `across` and `down`. There is a panel for each combination of the other
/// factors.
pub(super) fn ratios(
    data: &ReportData,
    page: &str,
    across: &VariedFactor,
    down: &VariedFactor,
) -> Figure {
    let title = format!(
        "Ratio of load times of {page} over {} and {}",
        down.name, across.name
    );
    let words = ["ratio", "over", &down.name, &across.name, page];
    // The maps of one combination are in one row.
    let others = (data.protocols.len() - 1).clamp(1, MAX_COLUMNS);
    let mut figure = Figure::new(&words, title, MAX_COLUMNS / others * others);
    figure.class = "heat";
    let scale = ColorScale::of(data);
    figure.legend = scale.legend();
    let axes = HeatAxes::of(across, down);
    for (caption, trials) in data.panels(page, &[&across.name, &down.name]) {
        for protocol in &data.protocols[1..] {
            let pair = format!("{page}: {protocol} to {}", data.reference());
            let caption = match &caption[..] {
                "" => pair,
                caption => format!("{pair}, {caption}"),
            };
            let mut panel = panel(data, protocol, &caption, &axes, &scale, &trials);
            panel.class = data.filter_classes(&trials, &[&across.name, &down.name]);
            figure.push(panel);
        }
    }
    figure
}

/// The axes of a heat map, with room for their labels.
struct HeatAxes<'a> {
    across: &'a VariedFactor,
    down: &'a VariedFactor,
    left: f64,
    column: f64,
}

impl<'a> HeatAxes<'a> {
    fn of(across: &'a VariedFactor, down: &'a VariedFactor) -> Self {
        let wide = |text: &str| width(text, TextStyle::Axis.size());
        let widest = |factor: &VariedFactor| {
            let levels = factor.levels.iter().map(|(level, _)| wide(level));
            levels.fold(0.0, f64::max)
        };
        Self {
            across,
            down,
            left: widest(down).max(wide(&down.name)).max(LEFT - 8.0) + 8.0,
            column: (widest(across) + 6.0).max(COLUMN),
        }
    }

    fn draw(&self, panel: &mut Panel, right: f64, bottom: f64) {
        let left = self.left - 5.0;
        let name = self.down.name.clone();
        panel.text(TextStyle::Before, left, TOP / 2.0 - 1.0, name);
        for (row, (level, _)) in self.down.levels.iter().enumerate() {
            let middle = TOP + ROW * (row as f64 + 0.5);
            panel.text(TextStyle::Before, left, middle, level.clone());
        }
        for (column, (level, _)) in self.across.levels.iter().enumerate() {
            let middle = self.left + self.column * (column as f64 + 0.5);
            panel.text(TextStyle::Axis, middle, bottom + 9.0, level.clone());
        }
        let middle = f64::midpoint(self.left, right);
        let name = self.across.name.clone();
        panel.text(TextStyle::Axis, middle, bottom + 23.0, name);
    }
}

fn panel(
    data: &ReportData,
    protocol: &str,
    caption: &str,
    axes: &HeatAxes<'_>,
    scale: &ColorScale,
    trials: &[&Trial],
) -> Panel {
    let HeatAxes { across, down, .. } = axes;
    let right = axes.left + axes.column * across.levels.len() as f64 + 2.0;
    let bottom = TOP + ROW * down.levels.len() as f64;
    let mut panel = Panel::new(right.max(MIN_WIDTH), bottom + AXIS);
    panel.caption = caption.to_owned();
    panel.title = format!("Ratio of load times, {caption}");
    panel.description = format!(
        "{} from top to bottom, {} from left to right; below 1 is faster.\n",
        down.name, across.name
    );
    axes.draw(&mut panel, right, bottom);
    for (row, (level_down, _)) in down.levels.iter().enumerate() {
        let top = TOP + ROW * row as f64;
        for (column, (level_across, _)) in across.levels.iter().enumerate() {
            let is_here = |trial: &&&Trial| {
                trial.level(&down.name) == Some(level_down)
                    && trial.level(&across.name) == Some(level_across)
            };
            let x = axes.left + axes.column * column as f64;
            let place = [x + 0.5, top + 0.5, axes.column - 1.0, ROW - 1.0];
            let about = format!("{} {level_down}, {} {level_across}", down.name, across.name);
            let ratio = trials.iter().find(is_here);
            let Some(ratio) = ratio.and_then(|trial| trial.ratio(protocol, data.reference()))
            else {
                panel.rect(ShapeStyle::Absent, place, format!("{about}: missing"));
                continue;
            };
            let about = format!("{about}: ×{ratio:.3}");
            panel.description.push_str(&about);
            panel.description.push('\n');
            panel.group(about, |panel| {
                panel.rect(scale.ink(ratio), place, "");
                let (middle, shown) = (x + axes.column / 2.0, format!("{ratio:.2}"));
                panel.text(TextStyle::Cell, middle, top + ROW / 2.0, shown);
            });
        }
    }
    panel
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strength(ink: ShapeStyle) -> f64 {
        match ink {
            ShapeStyle::Good(strength) => -strength,
            ShapeStyle::Bad(strength) => strength,
            other => panic!("{other:?} is no colour of a ratio"),
        }
    }

    #[test]
    fn larger_distances_from_1_are_stronger_up_to_the_end_of_the_scale() {
        let scale = ColorScale { end: 20.0 };
        let ratios = [0.05, 0.1, 0.5, 0.9, 1.0, 1.1, 2.0, 10.0, 20.0];
        let strengths = ratios.map(|ratio| strength(scale.ink(ratio)));
        assert!(strengths.is_sorted_by(|a, b| a < b), "{strengths:?}");
        assert_eq!((strengths[0], strengths[4], strengths[8]), (-1.0, 0.0, 1.0));
    }

    #[test]
    fn the_legend_has_both_ends_and_1() {
        let names: Vec<_> = ColorScale { end: 8.0 }
            .legend()
            .into_iter()
            .map(|(_, name)| name)
            .collect();
        assert_eq!(
            names,
            ["×0.12", "×0.25", "×0.50", "×1", "×2.00", "×4.00", "×8.00"]
        );
    }
}
