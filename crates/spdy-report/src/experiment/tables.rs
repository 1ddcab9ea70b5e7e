//! The tables of the report: ratios by page, traffic, and unreliable cells.

use std::fmt::{self, Write};

use spdy_lab::experiment::cell::levels_of;
use spdy_lab::stats::median;

use super::data::{CellStats, ReportData, Trial};
use crate::drawing::panel::ClassAttribute;
use crate::tables::{close, open};
use crate::text::{Bytes, Count, FullText, Millis, Ratio, Text};
use crate::times::class_of;

/// Rows of the tables of unreliable and missing cells.
const MAX_ROWS: usize = 40;

/// Writes the ratios of load times to the first protocol over all trials, for each page and protocol.
pub(super) fn ratios(out: &mut String, data: &ReportData) -> fmt::Result {
    let head = [
        "page",
        "protocol",
        "trials",
        "FCP",
        "LCP",
        "DOMContentLoaded",
        "load",
        "time on wire",
        "least",
        "most",
        "faster in",
    ];
    open(out, "Ratios to the first protocol", &head)?;
    for page in &data.pages {
        for (number, protocol) in data.protocols.iter().enumerate() {
            let trials: Vec<&Trial> = data
                .new_of(protocol)
                .filter(|trial| trial.page == *page)
                .collect();
            let ratios = |of: &dyn Fn(&CellStats) -> Option<f64>| -> Vec<f64> {
                let ratio = |trial: &&Trial| {
                    let reference = of(trial.cell(data.reference())?)?;
                    Some(of(trial.cell(protocol)?)? / reference).filter(|ratio| ratio.is_finite())
                };
                trials.iter().filter_map(ratio).collect()
            };
            let loads = ratios(&|cell| Some(cell.load.ms));
            let faster = loads.iter().filter(|ratio| **ratio < 1.0).count();
            write!(
                out,
                "<tr{first}><th scope=\"row\">{page}</th><td class=\"word {class}\">{protocol}</td><td>{count}</td>\
                 <td>{fcp}</td><td>{lcp}</td><td>{dcl}</td><td>{load}</td><td>{tow}</td><td>{least}</td><td>{most}</td><td>{faster}</td></tr>",
                first = if number == 0 { " class=\"first\"" } else { "" },
                page = Text(if number == 0 { page } else { "" }),
                class = class_of(protocol),
                protocol = Text(protocol),
                count = loads.len(),
                fcp = Ratio(geometric_mean(&ratios(&|cell| cell.fcp_ms))),
                lcp = Ratio(geometric_mean(&ratios(&|cell| cell.lcp_ms))),
                dcl = Ratio(geometric_mean(&ratios(&|cell| Some(
                    cell.dom_content_loaded?.ms
                )))),
                load = Ratio(geometric_mean(&loads)),
                tow = Ratio(geometric_mean(&ratios(&|cell| Some(cell.time_on_wire?.ms)))),
                least = Ratio(loads.iter().copied().min_by(f64::total_cmp)),
                most = Ratio(loads.iter().copied().max_by(f64::total_cmp)),
            )?;
        }
    }
    close(out)?;
    match data.repeats() {
        0 => Ok(()),
        count => write!(
            out,
            "<p>{} cells differ from others in levels that have no effect on their protocol, and in their seeds. A comparison of two \
             such cells is counted once here, in the scatter plots and in the distributions.</p>",
            Count(count as u64)
        ),
    }
}

/// Writes medians of the traffic over all trials, for each page and protocol.
pub(super) fn wire(out: &mut String, data: &ReportData) -> fmt::Result {
    let head = [
        "page",
        "protocol",
        "connections",
        "packets",
        "bytes",
        "request heads",
        "saved",
        "response heads",
        "saved",
    ];
    open(out, "On the wire", &head)?;
    for page in &data.pages {
        for (number, protocol) in data.protocols.iter().enumerate() {
            let cells = || {
                let trials = data.trials.iter().filter(|trial| trial.page == *page);
                trials.filter_map(|trial| trial.cell(protocol))
            };
            let middle = |of: &dyn Fn(&CellStats) -> Option<f64>| median(cells().filter_map(of));
            let count = |value: Option<f64>| {
                value.map_or("–".to_owned(), |value| {
                    Count(value.round() as u64).to_string()
                })
            };
            let bytes = |value: Option<f64>| {
                value.map_or("–".to_owned(), |value| {
                    Bytes(value.round() as u64).to_string()
                })
            };
            let heads = |text: usize| {
                let wire = middle(&|cell| Some(cell.header_bytes?[text + 1]));
                let saved = middle(&|cell| {
                    let heads = cell.header_bytes?;
                    (heads[text] > 0.0).then(|| 1.0 - heads[text + 1] / heads[text])
                });
                let saved = saved.map_or("–".to_owned(), |saved| {
                    format!("{:.0}\u{202f}%", saved * 100.0)
                });
                format!("<td>{}</td><td>{saved}</td>", bytes(wire))
            };
            write!(
                out,
                "<tr{first}><th scope=\"row\">{page}</th><td class=\"word {class}\">{protocol}</td><td>{connections}</td>\
                 <td>{packets}</td><td>{bytes}</td>{requests}{responses}</tr>",
                first = if number == 0 { " class=\"first\"" } else { "" },
                page = Text(if number == 0 { page } else { "" }),
                class = class_of(protocol),
                protocol = Text(protocol),
                connections = count(middle(&|cell| cell.connections)),
                packets = count(middle(&|cell| cell.packets)),
                bytes = bytes(middle(&|cell| cell.bytes)),
                requests = heads(0),
                responses = heads(2),
            )?;
        }
    }
    close(out)
}

/// Writes the cells whose loads are incomplete or have two modes.
pub(super) fn suspect_cells(out: &mut String, data: &ReportData) -> fmt::Result {
    let doubtful: Vec<(&Trial, &CellStats)> = data
        .trials
        .iter()
        .flat_map(|trial| trial.cells.iter().map(move |cell| (trial, cell)))
        .filter(|(_, cell)| cell.failed > 0 || cell.invalid > 0 || cell.modes.is_some())
        .collect();
    if let [key, ..] = &data.cells_without_figures[..] {
        let others = match data.cells_without_figures.len() - 1 {
            0 => String::new(),
            others => format!(" and {others} more"),
        };
        write!(
            out,
            "<p>Excluded from all figures, because no run is valid: {}{others}.</p>",
            FullText(key)
        )?;
        if doubtful.is_empty() {
            return Ok(());
        }
    }
    if doubtful.is_empty() {
        return write!(
            out,
            "<p>None: every load is complete and valid, and the times of each cell have one mode.</p>"
        );
    }
    let head = ["page", "cell", "protocol", "runs", "load ms", "reason"];
    open(out, "Cells to look at", &head)?;
    let factors: Vec<_> = data.factors.iter().collect();
    for (trial, cell) in doubtful.iter().take(MAX_ROWS) {
        let reason = match (&cell.failure, &cell.modes) {
            (Some(failure), _) => format!("{} loads are incomplete: {failure}", cell.failed),
            (None, Some(modes)) => format!(
                "two modes: about {} ms, and {} ms in {:.0} %",
                Millis(modes.low),
                Millis(modes.high),
                modes.high_part * 100.0
            ),
            (None, None) => format!("{} runs are invalid", cell.invalid),
        };
        write!(
            out,
            "<tr{}><th scope=\"row\">{}</th><td class=\"word\">{}</td><td class=\"word {}\">{}</td><td>{}</td><td>{}</td><td \
             class=\"word\">{}</td></tr>",
            ClassAttribute(&data.filter.classes(trial, &[])),
            Text(&trial.page),
            Text(&trial.caption(&factors)),
            class_of(&cell.protocol),
            Text(&cell.protocol),
            cell.runs,
            Millis(cell.load.ms),
            Text(&reason),
        )?;
    }
    close(out)?;
    if let more @ 1.. = doubtful.len().saturating_sub(MAX_ROWS) {
        write!(
            out,
            "<p>And {more} more; <code>spdy lab export</code> has every run.</p>"
        )?;
    }
    Ok(())
}

/// Writes the keys of cells that the plan has and the store lacks.
pub(super) fn missing_cells(out: &mut String, data: &ReportData, keys: &[String]) -> fmt::Result {
    open(out, "Missing cells", &["cell"])?;
    for key in keys.iter().take(MAX_ROWS) {
        let class = data.filter.classes_of_levels(&levels_of(key));
        let class = ClassAttribute(&class);
        write!(
            out,
            "<tr{class}><th scope=\"row\">{}</th></tr>",
            FullText(key)
        )?;
    }
    close(out)?;
    if let more @ 1.. = keys.len().saturating_sub(MAX_ROWS) {
        write!(
            out,
            "<p>And {more} more; <code>spdy lab cells</code> lists them with <code>--store</code>.</p>"
        )?;
    }
    Ok(())
}

pub(super) fn geometric_mean(ratios: &[f64]) -> Option<f64> {
    let sum: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    (!ratios.is_empty()).then(|| (sum / ratios.len() as f64).exp())
}
