//! The results for one page: every load, and the tables.

use serde::Serialize;
use spdy_lab::live::browser_cell::{BrowserCell, ProtocolRatio};
use spdy_lab::live::browser_load::BrowserLoad;
use spdy_lab::stats::median;

use crate::commands::lab::calibrate::{error_cell, ms_cell};
use crate::output::{Cell, DIM, Printer, Table, WARN};

/// Loads of one page in a browser and in virtual time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct Series {
    /// Name of the page.
    pub(super) replica: String,
    /// The system's load average over the last minute, before the loads.
    pub(super) load_before: Option<f64>,
    /// The system's load average over the last minute, after the loads.
    pub(super) load_after: Option<f64>,
    /// Each protocol over each network.
    pub(super) cells: Vec<BrowserCell>,
    /// Ratios of protocols.
    pub(super) ratios: Vec<ProtocolRatio>,
}

impl Series {
    /// What a user sees: the table of paints, layout shifts and blocking time.
    fn paints(&self) -> Table {
        let words = ["network", "protocol"].map(Cell::word);
        let figures = [
            "FCP ms",
            "simulated ms",
            "difference",
            "LCP ms",
            "simulated ms",
            "difference",
            "CLS",
            "TBT ms",
            "Speed Index ms",
        ];
        let mut table = Table::new(words.into_iter().chain(figures.map(Cell::number)));
        for cell in &self.cells {
            let [fcp, lcp] = [
                cell.median(|load| load.metrics.fcp_ms),
                cell.median(|load| load.metrics.lcp_ms),
            ];
            let [simulated_fcp, simulated_lcp] = [&cell.virtual_fcp_ms, &cell.virtual_lcp_ms]
                .map(|simulated| median(simulated.iter().flatten().copied()));
            let error = |simulated: Option<f64>, browser: Option<f64>| {
                error_cell(simulated.zip(browser).map(|(ours, its)| ours / its - 1.0))
            };
            let cls = cell.median(|load| load.metrics.cls);
            table.row([
                Cell::word(&cell.network),
                Cell::word(cell.protocol),
                ms_cell(fcp),
                ms_cell(simulated_fcp),
                error(simulated_fcp, fcp),
                ms_cell(lcp),
                ms_cell(simulated_lcp),
                error(simulated_lcp, lcp),
                Cell::number(cls.map_or("–".to_owned(), |cls| format!("{cls:.3}"))),
                ms_cell(cell.median(|load| load.metrics.tbt_ms)),
                ms_cell(cell.median(|load| load.metrics.speed_index_ms)),
            ]);
        }
        table
    }

    pub(super) fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let words = ["network", "protocol"].map(Cell::word);
        let figures = [
            "load ms",
            "DCL ms",
            "simulated ms",
            "difference",
            "requests",
            "connections",
            "kB down",
            "count",
            "excluded",
        ];
        let mut table = Table::new(words.into_iter().chain(figures.map(Cell::number)));
        for cell in &self.cells {
            let whole = |figure: &dyn Fn(&BrowserLoad) -> f64| {
                let median = cell.median(|load| Some(figure(load)));
                Cell::number(median.map_or("–".to_owned(), |median| format!("{median:.0}")))
            };
            table.row([
                Cell::word(&cell.network),
                Cell::word(cell.protocol),
                ms_cell(cell.load_ms()),
                ms_cell(cell.median(|load| load.dom_content_loaded_ms)),
                ms_cell(cell.virtual_load_ms()),
                error_cell(cell.error()),
                whole(&|load| load.exchanges as f64),
                whole(&|load| load.connections as f64),
                whole(&|load| load.link.down.bytes as f64 / 1e3),
                Cell::number(cell.valid_loads().count()),
                Cell::number(cell.excluded().len()),
            ]);
        }
        printer.line(table)?;
        let has_paints = |cell: &BrowserCell| cell.median(|load| load.metrics.fcp_ms).is_some();
        if self.cells.iter().any(has_paints) {
            printer.line(self.paints())?;
        }
        for ratio in &self.ratios {
            let ProtocolRatio {
                network,
                base,
                protocol,
                browser,
                ours,
                ..
            } = ratio;
            let verdict = if ratio.agrees() { "agree" } else { "disagree" };
            let interval = match ratio.has_interval() {
                true => format!(" ({:.3} to {:.3})", browser.low, browser.high),
                false => String::new(),
            };
            printer.line(format_args!(
                "{network}: {protocol} over {base} is {:.3}{interval} in the browser and {ours:.3} simulated: they {verdict}",
                browser.value
            ))?;
        }
        for cell in &self.cells {
            let (network, protocol) = (&cell.network, cell.protocol);
            for reason in cell.excluded() {
                printer.note(format_args!(
                    "{WARN}excluded{WARN:#} from {network} by {protocol}: {reason}"
                ));
            }
            if let Some(omitted) = cell.valid_loads().next().map(|load| &load.omitted)
                && !omitted.is_empty()
            {
                let each: Vec<_> = omitted
                    .iter()
                    .map(|(kind, count)| format!("{count} {kind}"))
                    .collect();
                printer.note(format_args!(
                    "{WARN}not replayed{WARN:#} over {network} by {protocol}: requests of the page: {}",
                    each.join(", ")
                ));
            }
            let similar = |load: &BrowserLoad| Some(load.similar_requests.len() as f64);
            if let Some(count) = cell.median(similar).filter(|count| *count > 0.0) {
                printer.note(format_args!(
                    "{WARN}other queries{WARN:#} over {network} by {protocol}: {count:.0} requests a load got the recording of the same \
                     path with the most similar query (--json lists them)"
                ));
            }
            if let Some(failure) = &cell.virtual_failure {
                printer.note(format_args!(
                    "{WARN}the simulated load over {network} by {protocol} is incomplete{WARN:#}: {failure}"
                ));
            }
        }
        let load = |load: Option<f64>| load.map_or("?".to_owned(), |load| format!("{load:.1}"));
        let (before, after) = (load(self.load_before), load(self.load_after));
        printer.line(format_args!(
            "{DIM}{}; system load {before} to {after}{DIM:#}",
            self.replica
        ))
    }
}
