//! The HTML page, and the figures as separate files.

use std::collections::BTreeMap;
use std::fmt::{self, Write};

use spdy_lab::store::manifest::Manifest;
use spdy_lab::store::row::Row;

use super::conditions::Conditions;
use super::data::ReportData;
use super::sections::{self, Body, Section};
use super::tables;
use super::trial_waterfalls::TrialWaterfalls;
use crate::drawing::figure::Figure;
use crate::page::open_page;
use crate::text::{Count, FullText, Text};
use crate::waterfall;

/// Renders a store as one HTML document without scripts and external resources. `rows` are those of the store, in its order. `again`
/// has the waterfalls, or the reason why there are none.
#[must_use]
pub fn render(contents: &Manifest, rows: &[Row], again: &[TrialWaterfalls]) -> String {
    let mut out = String::new();
    let there = rows.iter().filter_map(|row| row.value("cell").as_str());
    let missing = contents.missing(&there.collect());
    let data = ReportData::of(rows);
    write_page(&mut out, contents, &data, rows.len(), again, &missing)
        .expect("a String takes every write");
    out
}

/// A figure as a file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FigureFile {
    /// Its unique name, without an ending: letters, digits and hyphens.
    pub name: String,
    /// An SVG document for white paper, with all colours and sizes as attributes.
    pub svg: String,
}

/// Every figure of the report as a separate file, with the conditions of `contents` under it.
#[must_use]
pub fn figures(contents: &Manifest, rows: &[Row], again: &[TrialWaterfalls]) -> Vec<FigureFile> {
    let data = ReportData::of(rows);
    let conditions = Conditions::of(contents, &data);
    if data.trials.is_empty() {
        return Vec::new();
    }
    let mut names = BTreeMap::<String, usize>::new();
    let drawn = |figure: Figure| {
        let same = names.entry(figure.stem.clone()).or_default();
        *same += 1;
        let name = match *same {
            1 => figure.stem.clone(),
            number => format!("{}--{number}", figure.stem),
        };
        FigureFile {
            name,
            svg: figure.to_svg(&conditions.under(&figure.title)),
        }
    };
    sections::figures(&data, again)
        .into_iter()
        .map(drawn)
        .collect()
}

fn write_page(
    out: &mut String,
    contents: &Manifest,
    data: &ReportData,
    loads: usize,
    again: &[TrialWaterfalls],
    missing: &[String],
) -> fmt::Result {
    let title = format!("Experiment: {}", contents.name);
    let cells: usize = data.trials.iter().map(|trial| trial.cells.len()).sum();
    let reference = data.reference();
    let about = format!(
        "{} page loads, {} of {} cells. Times are medians of the runs of a cell, in milliseconds{}; × is the ratio to {}: below 1 is \
         faster.",
        Count(loads as u64),
        Count(cells as u64),
        Count(contents.cells),
        match &contents.program[..] {
            "" => "",
            _ if data.real.is_empty() => " of the simulated network",
            _ => " of the network, simulated or real",
        },
        Text(reference)
    );
    let conditions = Conditions::of(contents, data);
    open_page(
        out,
        &title,
        &about,
        conditions.notes(),
        &data.filter.rules(),
    )?;
    data.filter.write(out)?;
    if !data.trials.is_empty() {
        for (number, section) in sections::of(data).iter().enumerate() {
            write_section(out, number, section, data, again)?;
        }
    }
    if !missing.is_empty() {
        let (count, cells) = (Count(missing.len() as u64), Count(contents.cells));
        write!(
            out,
            "<section><h2>Missing cells</h2><p>{count} of {cells} cells of the plan have not been loaded and are not in the results \
             above.</p>"
        )?;
        tables::missing_cells(out, data, missing)?;
        write!(out, "</section>")?;
    }
    writeln!(out, "</main></body></html>")
}

fn write_section(
    out: &mut String,
    number: usize,
    section: &Section,
    data: &ReportData,
    again: &[TrialWaterfalls],
) -> fmt::Result {
    let (heading, about) = (Text(&section.heading), FullText(&section.about));
    write!(out, "<section><h2>{heading}</h2><p>{about}</p>")?;
    let id = |place: usize| format!("f{number}-{place}");
    match &section.body {
        Body::Figures(figures) => {
            for (place, figure) in figures.iter().enumerate() {
                let write = |out: &mut String| figure.write_html(out, &id(place));
                match figures.len() {
                    1 => write(out)?,
                    _ => {
                        let class = &figure.class_on_page;
                        details(out, class, &figure.title, place == 0, write)?;
                    }
                }
            }
        }
        Body::Waterfalls => {
            if again.iter().any(|again| !again.loads.is_empty()) {
                waterfall::legend(out)?;
            }
            for (place, again) in again.iter().enumerate() {
                write_waterfalls(out, &id(place), again, place == 0)?;
            }
        }
    }
    if let Some(table) = section.table {
        table(out, data)?;
    }
    write!(out, "</section>")
}

fn write_waterfalls(
    out: &mut String,
    id: &str,
    again: &TrialWaterfalls,
    is_open: bool,
) -> fmt::Result {
    let summary = match &again.over[..] {
        "" => again.page.clone(),
        over => format!("{}, {over}", again.page),
    };
    details(out, "", &summary, is_open, |out| {
        for note in &again.notes {
            write!(out, "<p>{}</p>", FullText(note))?;
        }
        let loads: Vec<_> = again.loads.iter().collect();
        waterfall::side_by_side(out, id, &again.over, &loads)
    })
}

/// Writes the panels of a page, which a reader can open.
fn details(
    out: &mut String,
    class: &str,
    summary: &str,
    is_open: bool,
    panels: impl FnOnce(&mut String) -> fmt::Result,
) -> fmt::Result {
    let open = if is_open { " open" } else { "" };
    let space = if class.is_empty() { "" } else { " " };
    let summary = Text(summary);
    write!(
        out,
        "<details class=\"network{space}{class}\"{open}><summary>{summary}</summary>"
    )?;
    panels(out)?;
    write!(out, "</details>")
}
