//! The result of a race as a table: a row for each page and network, a bar for each protocol. Where that is
//! too wide, a row for each protocol.

use std::ops::RangeInclusive;

use spdy_lab::stats::{Bootstrap, MIN_RUNS};
use spdy_sim::race::typical_run;
use spdy_sim::race_results::{NetworkRace, ProtocolLoads, RaceResults};

use crate::output::{BAD, BOLD, Cell, DIM, GOOD, Table, bar};

/// Columns of a bar in a wide table.
const BAR: RangeInclusive<usize> = 4..=14;
/// Columns of a bar in a tall table.
const LONG_BAR: RangeInclusive<usize> = 10..=40;
/// Columns of a protocol beside its bar: time, ratio, and the gaps after each and after the bar.
const NUMBERS: usize = 5 + 2 + 5 + 2 + 2;
/// A ratio this close to 1 is neither good nor bad.
const EVEN: f64 = 0.02;

/// The table, for a terminal of `width` columns.
pub(crate) fn render(results: &RaceResults<'_>, width: usize) -> Table {
    let names = results.pages.iter().flat_map(|page| {
        page.networks
            .iter()
            .map(|over| [page.replica, over.network])
    });
    let longest = |column: usize| {
        names
            .clone()
            .map(|row| console::measure_text_width(row[column]))
            .max()
    };
    let names_width = longest(0).unwrap_or(0).max("page".len())
        + longest(1).unwrap_or(0).max("network".len())
        + 4;
    let protocols = results.protocols();
    let room = width.saturating_sub(names_width) / protocols.len().max(1);
    match room.checked_sub(NUMBERS) {
        Some(bar_width) if bar_width >= *BAR.start() => {
            wide(results, &protocols, bar_width.min(*BAR.end()))
        }
        _ => {
            let room = width.saturating_sub(names_width + NUMBERS + "protocol".len());
            tall(results, room.clamp(*LONG_BAR.start(), *LONG_BAR.end()))
        }
    }
}

fn wide(results: &RaceResults<'_>, protocols: &[&str], bar_width: usize) -> Table {
    let head = ["page", "network"].into_iter().map(Cell::word);
    let columns = protocols.iter().flat_map(|protocol| {
        [
            Cell::number(protocol),
            Cell::number("ratio"),
            Cell::default(),
        ]
    });
    let mut table = Table::new(head.chain(columns));
    for page in &results.pages {
        for over in &page.networks {
            let mut row = vec![
                Cell::word(page.replica).styled(BOLD),
                Cell::word(over.network),
            ];
            for protocol in protocols {
                row.extend(
                    over.protocol(protocol)
                        .map_or_else(absent, |entrant| cells(over, entrant, bar_width)),
                );
            }
            table.row(row);
        }
    }
    table
}

fn tall(results: &RaceResults<'_>, bar_width: usize) -> Table {
    let words = ["page", "network", "protocol"].into_iter().map(Cell::word);
    let mut table = Table::new(words.chain(["ms", "ratio"].map(Cell::number)));
    for page in &results.pages {
        for over in &page.networks {
            for (number, entrant) in over.protocols.iter().enumerate() {
                let names = if number == 0 {
                    [page.replica, over.network]
                } else {
                    ["", ""]
                };
                let [replica, network] = names.map(Cell::word);
                let mut row = vec![replica.styled(BOLD), network, Cell::word(entrant.protocol)];
                row.extend(cells(over, entrant, bar_width));
                table.row(row);
            }
        }
    }
    table
}

fn absent() -> [Cell; 3] {
    [
        Cell::number("–").styled(DIM),
        Cell::default(),
        Cell::default(),
    ]
}

fn cells(over: &NetworkRace<'_>, entrant: &ProtocolLoads<'_>, bar_width: usize) -> [Cell; 3] {
    let load = entrant.typical();
    let ratio = over.ratio(entrant);
    let style = match ratio {
        Some(ratio) if ratio < 1.0 - EVEN => GOOD,
        Some(ratio) if ratio > 1.0 + EVEN => BAD,
        _ => DIM,
    };
    let mark = if entrant.is_whole() { "" } else { "!" };
    [
        Cell::number(format_args!("{mark}{:.0}", load.load_ms)),
        Cell::number(ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))).styled(style),
        Cell::word(bar(load.load_ms / over.slowest_ms(), bar_width)).styled(style),
    ]
}

/// The ratios of protocols whose runs differ, with 95 % intervals by resampling their runs. `None` if there are none, or fewer than
/// [`MIN_RUNS`] runs: the interval would be too narrow.
pub(crate) fn intervals(results: &RaceResults<'_>) -> Option<Table> {
    let times = |entrant: &ProtocolLoads<'_>| -> Vec<f64> {
        entrant.loads.iter().map(|load| load.load_ms).collect()
    };
    let differ = |times: &[f64]| times.iter().any(|time| *time != times[0]);
    let words = ["page", "network", "protocol"].map(Cell::word);
    let numbers = ["ratio", "95 %"].map(Cell::number);
    let mut table = Table::new(words.into_iter().chain(numbers));
    let mut is_empty = true;
    for page in &results.pages {
        for over in &page.networks {
            let reference = over.reference();
            let base = times(reference);
            for entrant in &over.protocols {
                let other = times(entrant);
                let has_chance = differ(&base) || differ(&other);
                let has_interval = has_chance && base.len().min(other.len()) >= MIN_RUNS;
                if entrant.protocol == reference.protocol || !has_interval {
                    continue;
                }
                let ratio = |base: &[f64], other: &[f64]| typical(other) / typical(base);
                let Some(ratio) = Bootstrap::default().of_two((&base, &other), ratio) else {
                    continue;
                };
                is_empty = false;
                table.row([
                    Cell::word(page.replica).styled(BOLD),
                    Cell::word(over.network),
                    Cell::word(format_args!("{}/{}", entrant.protocol, reference.protocol)),
                    Cell::number(format_args!("{:.2}", ratio.value)),
                    Cell::number(format_args!("{:.2} to {:.2}", ratio.low, ratio.high)),
                ]);
            }
        }
    }
    (!is_empty).then_some(table)
}

/// The time of the [typical run](typical_run).
fn typical(times: &[f64]) -> f64 {
    let mut times = times.to_vec();
    times.sort_by(f64::total_cmp);
    times[typical_run(times.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use spdy_sim::load::Load;

    fn load(protocol: &str, network: &str, load_ms: f64, failures: &[&str]) -> Load {
        Load {
            replica: "portal".to_owned(),
            protocol: protocol.to_owned(),
            network: network.to_owned(),
            seed: 1,
            dom_content_loaded_ms: load_ms / 2.0,
            fcp_ms: None,
            lcp_ms: None,
            load_ms,
            time_on_wire_ms: load_ms,
            connections: 1,
            requests: 1,
            packets_up: 1,
            packets_down: 1,
            bytes_up: 1,
            bytes_down: 1,
            request_header_bytes: 1,
            request_header_bytes_wire: 1,
            response_header_bytes: 1,
            response_header_bytes_wire: 1,
            failures: failures.iter().map(|&failure| failure.to_owned()).collect(),
            ..Load::default()
        }
    }

    fn plain(loads: &[Load], width: usize) -> String {
        let table = render(&RaceResults::of(loads), width).to_string();
        anstream::adapter::strip_str(&table).to_string()
    }

    #[test]
    fn a_wide_table_has_a_row_a_network_and_marks_what_is_absent_or_failed() {
        let loads = [
            load("http", "dsl", 1_000.0, &[]),
            load("spdy", "dsl", 500.0, &["lost"]),
            load("http", "lte", 400.0, &[]),
        ];
        assert_eq!(
            plain(&loads, 58),
            "\
page    network  http  ratio        spdy  ratio
portal  dsl      1000   1.00  ████  !500   0.50  ██
portal  lte       400   1.00  ████     –"
        );
    }

    #[test]
    fn ratios_of_six_random_runs_have_intervals() {
        let runs = |protocol: &str, network: &str, times: &[f64]| -> Vec<Load> {
            let run = |&ms: &f64| load(protocol, network, ms, &[]);
            times.iter().map(run).collect()
        };
        let equal = [1_000.0; 6];
        let random = [900.0, 950.0, 1_000.0, 1_000.0, 1_050.0, 1_100.0];
        let half = random.map(|ms| ms / 2.0);
        let mut loads = runs("http", "dsl", &equal);
        loads.extend(runs("spdy", "dsl", &equal));
        loads.extend(runs("http", "3g", &random[..5]));
        loads.extend(runs("spdy", "3g", &half[..5]));
        assert!(intervals(&RaceResults::of(&loads)).is_none());
        loads.extend(runs("http", "lte", &random));
        loads.extend(runs("spdy", "lte", &half));
        let table = intervals(&RaceResults::of(&loads)).expect("random runs");
        let table = table.to_string();
        assert_eq!(
            anstream::adapter::strip_str(&table).to_string(),
            "\
page    network  protocol   ratio          95 %
portal  lte      spdy/http   0.50  0.45 to 0.56"
        );
    }

    #[test]
    fn a_narrow_terminal_gets_a_row_a_protocol() {
        let loads = [
            load("http", "dsl", 1_000.0, &[]),
            load("spdy", "dsl", 500.0, &[]),
        ];
        assert_eq!(
            plain(&loads, 50),
            "\
page    network  protocol    ms  ratio
portal  dsl      http      1000   1.00  ██████████
                 spdy       500   0.50  █████"
        );
    }
}
