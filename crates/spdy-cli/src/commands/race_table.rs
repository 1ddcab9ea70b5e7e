//! The result of a race as a table: a row for each page and network, a bar for each protocol.

use spdy_lab::report::{Entrant, OverNetwork, Standings};

use crate::printer::{BAD, BOLD, DIM, GOOD};
use crate::table::{Cell, Table, bar};

/// Bars between these widths, in columns, depending on the room there is.
const BAR: std::ops::RangeInclusive<usize> = 4..=14;
/// Columns of a protocol beside its bar: time, ratio, and the gaps between them.
const NUMBERS: usize = 8 + 2 + 4 + 2 + 2;
/// A ratio this close to 1 is neither good nor bad.
const EVEN: f64 = 0.02;

/// The table, for a terminal of `width` columns.
pub(crate) fn render(standings: &Standings<'_>, width: usize) -> Table {
    let protocols = standings.protocols();
    let names = standings.pages.iter().flat_map(|page| {
        page.networks
            .iter()
            .map(|over| (page.replica, over.network))
    });
    let taken = names
        .map(|(page, network)| page.len() + network.len() + 2)
        .max()
        .unwrap_or(0);
    let room = width.saturating_sub(taken) / protocols.len().max(1);
    let bar_width = room.saturating_sub(NUMBERS).clamp(*BAR.start(), *BAR.end());

    let head = ["page", "network"].into_iter().map(Cell::word);
    let columns = protocols.iter().flat_map(|protocol| {
        [
            Cell::number(format_args!("{protocol} ms")),
            Cell::number("ratio"),
            Cell::word(""),
        ]
    });
    let mut table = Table::new(head.chain(columns));
    for page in &standings.pages {
        for over in &page.networks {
            let mut row = vec![
                Cell::word(page.replica).styled(BOLD),
                Cell::word(over.network),
            ];
            for protocol in &protocols {
                row.extend(
                    over.entrant(protocol)
                        .map_or_else(absent, |entrant| cells(over, entrant, bar_width)),
                );
            }
            table.row(row);
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

fn cells(over: &OverNetwork<'_>, entrant: &Entrant<'_>, bar_width: usize) -> [Cell; 3] {
    let load = entrant.typical();
    let ratio = over.ratio(entrant);
    let style = match ratio {
        Some(ratio) if ratio < 1.0 - EVEN => GOOD,
        Some(ratio) if ratio > 1.0 + EVEN => BAD,
        _ => DIM,
    };
    // A load with failures is a load of another page.
    let mark = if load.failures.is_empty() { "" } else { "!" };
    [
        Cell::number(format_args!("{mark}{:.0}", load.load_ms)),
        Cell::number(ratio.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"))).styled(style),
        Cell::word(bar(load.load_ms / over.slowest_ms(), bar_width)).styled(style),
    ]
}
