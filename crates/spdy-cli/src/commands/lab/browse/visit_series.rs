//! The results for a visit: every load, and the table.

use serde::Serialize;
use spdy_lab::live::visit_cell::VisitCell;

use crate::commands::lab::calibrate::{error_cell, ms_cell};
use crate::output::{Cell, DIM, Printer, Table, WARN};

/// Visits of several pages in a browser and in virtual time.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct VisitSeries {
    /// Names of the pages, in the order of the visit.
    pub(super) replicas: Vec<String>,
    /// Pause between two pages.
    pub(super) pause_ms: f64,
    /// The system's load average over the last minute, before the loads.
    pub(super) load_before: Option<f64>,
    /// The system's load average over the last minute, after the loads.
    pub(super) load_after: Option<f64>,
    /// Each protocol over each network.
    pub(super) cells: Vec<VisitCell>,
}

impl VisitSeries {
    fn table(&self) -> Table {
        let words = ["network", "protocol", "page"].map(Cell::word);
        let figures = [
            "alone ms",
            "simulated ms",
            "in visit ms",
            "simulated ms",
            "difference",
            "requests",
            "simulated",
            "connections",
            "simulated",
            "count",
        ];
        let mut table = Table::new(words.into_iter().chain(figures.map(Cell::number)));
        for cell in &self.cells {
            for (number, page) in cell.pages.iter().enumerate() {
                let requests = cell.median(number, |visited| Some(visited.requests as f64));
                let connections = cell.median(number, |visited| Some(visited.connections as f64));
                table.row([
                    Cell::word(&cell.network),
                    Cell::word(cell.protocol),
                    Cell::word(&page.replica),
                    ms_cell(page.alone.load_ms()),
                    ms_cell(page.alone.virtual_load_ms()),
                    ms_cell(cell.median(number, |visited| visited.load_ms)),
                    ms_cell(page.median(|load| load.load_ms)),
                    error_cell(cell.error(number)),
                    count_cell(requests),
                    count_cell(page.median(|load| load.requests as f64)),
                    count_cell(connections),
                    count_cell(page.median(|load| load.connections as f64)),
                    Cell::number(cell.valid_visits().count()),
                ]);
            }
        }
        table
    }

    pub(super) fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        printer.line(self.table())?;
        for cell in &self.cells {
            let (network, protocol) = (&cell.network, cell.protocol);
            for reason in cell.excluded() {
                printer.note(format_args!(
                    "{WARN}excluded{WARN:#} from {network} by {protocol}: {reason}"
                ));
            }
            let alone = cell.pages.iter().map(|page| &page.alone.virtual_failure);
            let failures = alone.chain([&cell.virtual_failure]).flatten();
            for failure in failures {
                printer.note(format_args!(
                    "{WARN}a simulated load over {network} by {protocol} is incomplete{WARN:#}: {failure}"
                ));
            }
        }
        let load = |load: Option<f64>| load.map_or("?".to_owned(), |load| format!("{load:.1}"));
        let (before, after) = (load(self.load_before), load(self.load_after));
        printer.line(format_args!(
            "{DIM}{} s between two pages; system load {before} to {after}{DIM:#}",
            self.pause_ms / 1e3
        ))
    }
}

fn count_cell(figure: Option<f64>) -> Cell {
    Cell::number(figure.map_or("–".to_owned(), |figure| format!("{figure:.0}")))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use spdy_lab::live::visit_cell::BrowserVisits;
    use spdy_sim::options::{Options, RaceProtocol};
    use spdy_sim::race::RaceNetwork;

    use super::*;

    #[test]
    fn the_table_has_a_row_for_each_page_even_without_valid_loads() {
        let network = RaceNetwork::parse("cable").expect("it has a name");
        let alone = ["home", "article"].map(|name| (name.to_owned(), Vec::new()));
        let browser = BrowserVisits {
            alone: alone.into(),
            visits: Vec::new(),
        };
        let (protocol, options) = (RaceProtocol::H2, Options::default());
        let cell = VisitCell::new(&network, protocol, browser, Duration::ZERO, &options, 1);
        let series = VisitSeries {
            replicas: Vec::new(),
            pause_ms: 0.0,
            load_before: None,
            load_after: None,
            cells: vec![cell],
        };
        let table = series.table().to_string();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        for (row, page) in rows[rows.len() - 2..].iter().zip(["home", "article"]) {
            assert_eq!(row[..3], ["cable", "h2", page], "{table}");
            assert_eq!(row[3..12], ["–"; 9], "{table}");
            assert_eq!(row[12], "0", "{table}");
        }
    }
}
