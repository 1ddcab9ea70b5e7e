//! The sections of a report, in their order. The page and the files for papers are both made from this list.

use std::fmt;

use super::data::ReportData;
use super::trial_waterfalls::TrialWaterfalls;
use super::{distribution, heat, lines, main_effects, real_runs, scatter, tables, validity, wire};
use crate::drawing::figure::Figure;
use crate::waterfall;

/// A heading and its content.
pub(super) struct Section {
    pub(super) heading: String,
    pub(super) about: String,
    pub(super) body: Body,
    /// Numbers under the pictures.
    pub(super) table: Option<fn(&mut String, &ReportData) -> fmt::Result>,
}

/// Pictures of a section.
pub(super) enum Body {
    Figures(Vec<Figure>),
    /// Waterfalls of each page.
    Waterfalls,
}

fn section(heading: impl Into<String>, about: impl Into<String>, figures: Vec<Figure>) -> Section {
    Section {
        heading: heading.into(),
        about: about.into(),
        body: Body::Figures(figures),
        table: None,
    }
}

const WHISKERS: &str =
    "Medians; whiskers are their 95 % intervals, of cells with six runs or more that differ.";

/// Every section of a report.
pub(super) fn of(data: &ReportData) -> Vec<Section> {
    let reference = data.reference();
    let each = |figure: &dyn Fn(&str) -> Figure| -> Vec<Figure> {
        let of_page = |page: &String| Figure {
            class_on_page: data.filter.page_class(page),
            ..figure(page)
        };
        data.pages.iter().map(of_page).collect()
    };
    let has_interactions = data.factors.len() > 1;
    let mut sections = vec![Section {
        table: Some(tables::ratios),
        ..section(
            "Summary",
            "Geometric means over all trials: a trial is a cell without its protocol.",
            Vec::new(),
        )
    }];
    if has_interactions {
        let about = "Geometric means of the medians at each level, over all combinations of the other factors that have every level and \
                     protocol. All panels of a page share one scale.";
        sections.push(Section {
            table: Some(main_effects::table),
            ..section(
                "Main effects",
                about,
                each(&|page| main_effects::figure(data, page)),
            )
        });
    }
    if data.protocols.len() > 1 {
        let about = format!(
            "One dot per trial. Below the midline the protocol is faster than {reference}."
        );
        let figure = scatter::against_first(data);
        sections.push(section("Pairwise comparison", about, vec![figure]));
    }
    for factor in &data.factors {
        let figures = each(&|page| lines::loads(data, page, factor));
        let (heading, about) = match has_interactions {
            true => (
                format!("Interactions: load time over {}", factor.name),
                format!("A panel for each combination of the other factors. {WHISKERS}"),
            ),
            false => (
                format!("Load time over {}", factor.name),
                WHISKERS.to_owned(),
            ),
        };
        sections.push(section(heading, about, figures));
    }
    let moments = match data.axes().next().or(data.factors.first()) {
        Some(factor) => each(&|page| lines::moments(data, page, factor)),
        None => vec![lines::single_level(data)],
    };
    sections.push(section(
        "DOMContentLoaded, load and time on wire",
        WHISKERS,
        moments,
    ));
    let axes: Vec<_> = data.axes().collect();
    if let ([down, across, ..], 2..) = (axes.as_slice(), data.protocols.len()) {
        let heading = format!(
            "Interactions: ratios over {} and {}",
            down.name, across.name
        );
        let about = format!(
            "Blue where it is faster than {reference}, red where it is slower. All maps share one scale of colours, which covers every \
             ratio."
        );
        let figures = each(&|page| heat::ratios(data, page, across, down));
        sections.push(section(heading, about, figures));
    }
    let figures = vec![distribution::times(data), distribution::ratios(data)];
    let about = "Share of the trials that are loaded by a time, and share of the trials whose ratio to the first protocol is at most a \
                 value.";
    sections.push(section("Distribution", about, figures));
    sections.push(Section {
        heading: "Waterfalls".to_owned(),
        about: "One row per resource, in request order; all protocols share one scale of time."
            .to_owned(),
        body: Body::Waterfalls,
        table: None,
    });
    let figures = each(&|page| wire::amounts(data, page));
    sections.push(Section {
        table: Some(tables::wire),
        ..section(
            "On the wire",
            "Medians over all trials; heads of requests (full) and responses (pale) as they crossed the wire, and what that saves \
             against HTTP/1.1 text.",
            figures,
        )
    });
    let about = "One field per cell. The table also lists incomplete loads, and cells whose times have two modes, of which a median \
                 shows only one.";
    sections.push(Section {
        table: Some(tables::suspect_cells),
        ..section("Cells to look at", about, vec![validity::fields(data)])
    });
    if !data.real.is_empty() {
        sections.push(Section {
            table: Some(real_runs::runs),
            ..section(
                "Runs in real time",
                "The properties of each link, and whether the run is valid: a late, starved or incomplete run is repeated; a run that \
                 is never valid is stored with its reasons.",
                Vec::new(),
            )
        });
    }
    for section in &mut sections {
        if let Body::Figures(figures) = &mut section.body {
            figures.retain(|figure| !figure.panels.is_empty());
        }
    }
    sections
}

/// Every figure with the waterfalls of `again`, in their order.
pub(super) fn figures(data: &ReportData, again: &[TrialWaterfalls]) -> Vec<Figure> {
    let mut all = Vec::new();
    for section in of(data) {
        match section.body {
            Body::Figures(figures) => all.extend(figures),
            Body::Waterfalls => all.extend(again.iter().map(|again| {
                let loads: Vec<_> = again.loads.iter().collect();
                waterfall::figure(&["waterfall", &again.page], &again.over, &loads).0
            })),
        }
    }
    all.retain(|figure| !figure.panels.is_empty());
    all
}
