//! Validity of runs: a field for each cell, filled by the share of its complete loads.

use super::data::{CellStats, ReportData, Trial};
use crate::drawing::figure::Figure;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{ShapeStyle, TextStyle};

const LEFT: f64 = 62.0;
const FIELD: f64 = 9.0;
/// Fields in a row.
const ACROSS: usize = 42;
const GAP: f64 = 6.0;

/// A panel for each page.
pub(super) fn fields(data: &ReportData) -> Figure {
    let mut figure = Figure::new(&["validity"], "Complete loads", 2);
    figure.legend = vec![
        (ShapeStyle::Complete, "every load is complete".to_owned()),
        (ShapeStyle::Suspect, "times have two modes".to_owned()),
        (
            ShapeStyle::Bad(1.0),
            "share of loads that are incomplete or invalid".to_owned(),
        ),
        (ShapeStyle::Absent, "missing, or no valid run".to_owned()),
    ];
    for page in &data.pages {
        let is_of = |trial: &&Trial| trial.page == *page;
        let trials: Vec<_> = data.trials.iter().filter(is_of).collect();
        let factors: Vec<_> = data.factors.iter().map(|factor| &factor.name[..]).collect();
        let mut panel = panel(data, page, &trials);
        panel.class = data.filter_classes(&trials, &factors);
        figure.push(panel);
    }
    figure
}

fn panel(data: &ReportData, page: &str, trials: &[&Trial]) -> Panel {
    let rows = trials.len().div_ceil(ACROSS);
    let block = rows as f64 * FIELD + GAP;
    let across = trials.len().min(ACROSS) as f64;
    let width = (LEFT + across * FIELD).max(340.0);
    let mut panel = Panel::new(width, block * data.protocols.len() as f64);
    panel.caption = page.to_owned();
    panel.title = format!("Validity of the cells of {page}");
    let factors: Vec<_> = data.factors.iter().collect();
    for (number, protocol) in data.protocols.iter().enumerate() {
        let top = block * number as f64;
        let middle = top + rows as f64 * FIELD / 2.0;
        panel.text(TextStyle::Name, LEFT - 6.0, middle, protocol.clone());
        let (mut whole, mut there) = (0, 0);
        for (at, trial) in trials.iter().enumerate() {
            let x = LEFT + (at % ACROSS) as f64 * FIELD;
            let y = top + (at / ACROSS) as f64 * FIELD;
            let cell = trial.cell(protocol);
            let about = format!("{protocol}, {}: {}", trial.caption(&factors), about(cell));
            let place = [x + 0.5, y + 0.5, FIELD - 1.0, FIELD - 1.0];
            let class = data.filter.classes(trial, &[]);
            let Some(cell) = cell else {
                panel.classed_group(class, about, |panel| {
                    panel.rect(ShapeStyle::Absent, place, "");
                });
                continue;
            };
            there += 1;
            whole += usize::from(cell.invalid_runs() == 0);
            let ground = if cell.modes.is_some() {
                ShapeStyle::Suspect
            } else {
                ShapeStyle::Complete
            };
            panel.classed_group(class, about, |panel| {
                panel.rect(ground, place, "");
                if cell.invalid_runs() > 0 {
                    let high = place[3] * cell.invalid_runs() as f64 / cell.runs as f64;
                    let at_foot = [place[0], place[1] + place[3] - high, place[2], high];
                    panel.rect(ShapeStyle::Bad(1.0), at_foot, "");
                }
            });
        }
        let line = format!("{protocol}: {whole} of {there} cells are complete\n");
        panel.description.push_str(&line);
    }
    panel
}

fn about(cell: Option<&CellStats>) -> String {
    match cell {
        None => "missing".to_owned(),
        Some(cell) if cell.invalid_runs() > 0 => {
            let (bad, runs) = (cell.invalid_runs(), cell.runs);
            format!("{bad} of {runs} loads are incomplete or invalid")
        }
        Some(cell) if cell.modes.is_some() => format!("{} loads with two modes", cell.runs),
        Some(cell) => format!("{} loads", cell.runs),
    }
}
