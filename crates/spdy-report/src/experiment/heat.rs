//! Ratios over two factors: blue where the protocol is faster than the first, red where it is slower.

use super::data::{ReportData, Trial, VariedFactor};
use crate::drawing::figure::Figure;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{ShapeStyle, TextStyle};

const LEFT: f64 = 64.0;
const TOP: f64 = 16.0;
const COLUMN: f64 = 40.0;
const ROW: f64 = 22.0;
const AXIS: f64 = 32.0;

/// Ratio from which the colour no longer changes; its inverse is the other end.
const STRONGEST: f64 = 2.0;

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
    let mut figure = Figure::new(&words, title, 4.min(data.protocols.len() - 1));
    figure.class = "heat";
    figure.legend = [0.5, 0.7, 0.9, 1.1, 1.4, 2.0]
        .map(|ratio| (ink(ratio), format!("×{ratio}")))
        .to_vec();
    for (caption, trials) in data.panels(page, &[&across.name, &down.name]) {
        for protocol in &data.protocols[1..] {
            let pair = format!("{page}: {protocol} to {}", data.reference());
            let caption = match &caption[..] {
                "" => pair,
                caption => format!("{pair}, {caption}"),
            };
            figure.push(panel(data, protocol, &caption, (across, down), &trials));
        }
    }
    figure
}

/// The colour of a ratio: equal steps for equal factors.
fn ink(ratio: f64) -> ShapeStyle {
    let strength = (ratio.ln().abs() / STRONGEST.ln()).min(1.0);
    if ratio < 1.0 {
        ShapeStyle::Good(strength)
    } else {
        ShapeStyle::Bad(strength)
    }
}

fn panel(
    data: &ReportData,
    protocol: &str,
    caption: &str,
    (across, down): (&VariedFactor, &VariedFactor),
    trials: &[&Trial],
) -> Panel {
    let width = LEFT + COLUMN * across.levels.len() as f64 + 2.0;
    let bottom = TOP + ROW * down.levels.len() as f64;
    let mut panel = Panel::new(width.max(200.0), bottom + AXIS);
    panel.caption = caption.to_owned();
    panel.title = format!("Ratio of load times, {caption}");
    panel.description = format!(
        "{} from top to bottom, {} from left to right; below 1 is faster.\n",
        down.name, across.name
    );
    panel.text(
        TextStyle::Before,
        LEFT - 5.0,
        TOP / 2.0 - 1.0,
        down.name.clone(),
    );
    for (row, (level_down, _)) in down.levels.iter().enumerate() {
        let top = TOP + ROW * row as f64;
        let middle = top + ROW / 2.0;
        panel.text(TextStyle::Before, LEFT - 5.0, middle, level_down.clone());
        for (column, (level_across, _)) in across.levels.iter().enumerate() {
            let is_here = |trial: &&&Trial| {
                trial.level(&down.name) == Some(level_down)
                    && trial.level(&across.name) == Some(level_across)
            };
            let x = LEFT + COLUMN * column as f64;
            let place = [x + 0.5, top + 0.5, COLUMN - 1.0, ROW - 1.0];
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
                panel.rect(ink(ratio), place, "");
                panel.text(
                    TextStyle::Cell,
                    x + COLUMN / 2.0,
                    middle,
                    format!("{ratio:.2}"),
                );
            });
        }
    }
    for (column, (level, _)) in across.levels.iter().enumerate() {
        let middle = LEFT + COLUMN * (column as f64 + 0.5);
        panel.text(TextStyle::Axis, middle, bottom + 9.0, level.clone());
    }
    let middle = f64::midpoint(LEFT, width);
    panel.text(TextStyle::Axis, middle, bottom + 23.0, across.name.clone());
    panel
}
