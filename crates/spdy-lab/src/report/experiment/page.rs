//! The page that holds it all.

use std::fmt::{self, Write};

use super::data::Data;
use super::{distribution, heat, lines, scatter, tables};
use crate::report::page::open_page;
use crate::report::text::{Count, Text};
use crate::report::times::class_of;
use crate::store::results::Contents;
use crate::store::row::Row;

/// The report of a store as one HTML document: no script, nothing fetched. `rows` are those of the store, in its order.
#[must_use]
pub fn render(contents: &Contents, rows: &[Row]) -> String {
    let mut out = String::new();
    write_page(&mut out, contents, &Data::of(rows), rows.len())
        .expect("a String takes every write");
    out
}

fn write_page(out: &mut String, contents: &Contents, data: &Data, loads: usize) -> fmt::Result {
    let title = format!("Experiment: {}", contents.name);
    let cells: usize = data.trials.iter().map(|trial| trial.cells.len()).sum();
    let reference = data.reference();
    let about = format!(
        "{} page loads, {} of {} cells. Times are medians of the runs of a cell, in milliseconds of the simulated network; × is the ratio to {}: below 1 is faster.",
        Count(loads as u64),
        Count(cells as u64),
        Count(contents.cells),
        Text(reference)
    );
    let program = match &contents.program[..] {
        "" => "imported".to_owned(),
        version => format!("spdy {version}"),
    };
    let notes: Vec<(String, String)> = data
        .constant
        .iter()
        .cloned()
        .chain([
            ("runs a cell".to_owned(), contents.runs.to_string()),
            ("program".to_owned(), program),
            ("plan".to_owned(), contents.hash.chars().take(16).collect()),
        ])
        .collect();
    open_page(out, &title, &about, &notes)?;
    if !data.trials.is_empty() {
        write_sections(out, data)?;
    }
    writeln!(out, "</main></body></html>")
}

fn write_sections(out: &mut String, data: &Data) -> fmt::Result {
    write!(out, "<section><h2>Summary</h2>")?;
    legend(out, data)?;
    write!(
        out,
        "<p>Geometric means over all trials: a trial is a cell without its protocol.</p>"
    )?;
    tables::ratios(out, data)?;
    write!(out, "</section>")?;
    if data.protocols.len() > 1 {
        write!(
            out,
            "<section><h2>One against the other</h2><p>A dot a trial. Below the midline the protocol is faster than {}.</p>",
            Text(data.reference())
        )?;
        scatter::panels(out, data)?;
        write!(out, "</section>")?;
    }
    let axes: Vec<_> = data.axes().collect();
    for (number, factor) in axes.iter().enumerate() {
        write!(
            out,
            "<section><h2>Load time over {}</h2>",
            Text(&factor.name)
        )?;
        for (place, page) in data.pages.iter().enumerate() {
            let id = format!("lines-{number}-{place}");
            details(out, page, place == 0, |out| {
                lines::panels(out, &id, data, page, factor)
            })?;
        }
        write!(out, "</section>")?;
    }
    if let ([down, across, ..], 2..) = (axes.as_slice(), data.protocols.len()) {
        write!(
            out,
            "<section><h2>Ratios over {} and {}</h2><p>Green where it is faster than {}, red where it is slower.</p>",
            Text(&down.name),
            Text(&across.name),
            Text(data.reference())
        )?;
        for (place, page) in data.pages.iter().enumerate() {
            let id = format!("heat-{place}");
            details(out, page, place == 0, |out| {
                heat::panels(out, &id, data, page, (across, down))
            })?;
        }
        write!(out, "</section>")?;
    }
    write!(
        out,
        "<section><h2>Distribution</h2><p>How many of all trials are loaded by when.</p>"
    )?;
    distribution::panels(out, data)?;
    write!(
        out,
        "</section><section><h2>On the wire</h2><p>Medians over all trials; heads of requests and responses as they crossed the wire, and what that saves against HTTP/1.1 text.</p>"
    )?;
    tables::wire(out, data)?;
    write!(out, "</section><section><h2>Cells to look at</h2>")?;
    if !tables::doubtful(out, data)? {
        write!(
            out,
            "<p>None: every load got all of its page, and the runs of each cell form one heap.</p>"
        )?;
    }
    write!(out, "</section>")
}

/// A page's panels, to be opened.
fn details(
    out: &mut String,
    page: &str,
    is_open: bool,
    panels: impl FnOnce(&mut String) -> fmt::Result,
) -> fmt::Result {
    let open = if is_open { " open" } else { "" };
    write!(
        out,
        "<details class=\"network\"{open}><summary>{}</summary>",
        Text(page)
    )?;
    panels(out)?;
    write!(out, "</details>")
}

fn legend(out: &mut String, data: &Data) -> fmt::Result {
    write!(out, "<p class=\"legend\">")?;
    for protocol in &data.protocols {
        write!(
            out,
            "<span class=\"{}\"><i></i>{}</span>",
            class_of(protocol),
            Text(protocol)
        )?;
    }
    write!(out, "</p>")
}
