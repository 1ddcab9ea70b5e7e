//! The cells of a store as a table: a row for each combination of what varies, a column for each protocol.

use spdy_lab::store::summary::CellSummary;

use crate::output::{BAD, Cell, DIM, GOOD, Table, escape};

/// The factor whose levels are the columns.
const ACROSS: &str = "protocol";
/// A ratio this close to 1 is neither good nor bad.
const EVEN: f64 = 0.02;

/// Describes the factors with only one level.
pub(crate) fn constant(cells: &[CellSummary]) -> String {
    let Some(first) = cells.first() else {
        return String::new();
    };
    let same = |name: &str, level: &str| cells.iter().all(|cell| cell.level(name) == Some(level));
    let constant = first
        .levels
        .iter()
        .filter(|(name, level)| name != ACROSS && same(name, level));
    let constant: Vec<_> = constant
        .map(|(name, level)| format!("{name}={level}"))
        .collect();
    // Recorded names may hold anything.
    escape(&constant.join(" ")).into_owned()
}

/// The table.
pub(crate) fn render(cells: &[CellSummary]) -> Table {
    let mut protocols: Vec<&str> = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for cell in cells {
        if let Some(protocol) = cell
            .level(ACROSS)
            .filter(|protocol| !protocols.contains(protocol))
        {
            protocols.push(protocol);
        }
        for (name, _) in &cell.levels {
            let varies = cells
                .iter()
                .any(|other| other.level(name) != cell.level(name));
            if name != ACROSS && varies && !names.contains(&&name[..]) {
                names.push(name);
            }
        }
    }
    let head = names.iter().map(Cell::word);
    let columns = protocols.iter().enumerate().flat_map(|(at, protocol)| {
        let ratio = (at > 0).then(|| Cell::number("ratio"));
        [Some(Cell::number(protocol)), ratio].into_iter().flatten()
    });
    let mut table = Table::new(head.chain(columns));
    for (levels, across) in rows(cells, &names) {
        let first = across
            .iter()
            .find(|cell| cell.level(ACROSS) == protocols.first().copied());
        let first = first.and_then(|cell| cell.load_ms);
        let mut row: Vec<_> = levels
            .iter()
            .map(|level| Cell::word(level.unwrap_or("")))
            .collect();
        for (at, protocol) in protocols.iter().enumerate() {
            let cell = across
                .iter()
                .find(|cell| cell.level(ACROSS) == Some(protocol));
            row.push(time(cell.copied()));
            if at > 0 {
                let load = cell.and_then(|cell| cell.load_ms);
                row.push(ratio(load.zip(first).map(|(load, first)| load / first)));
            }
        }
        table.row(row);
    }
    table
}

/// Cells that agree in the levels of `names`, in the order of the first of each.
fn rows<'a>(
    cells: &'a [CellSummary],
    names: &[&str],
) -> Vec<(Vec<Option<&'a str>>, Vec<&'a CellSummary>)> {
    let mut rows: Vec<(Vec<Option<&str>>, Vec<&CellSummary>)> = Vec::new();
    // Looked up only, never walked through.
    let mut place = std::collections::HashMap::new();
    for cell in cells {
        let levels: Vec<_> = names.iter().map(|name| cell.level(name)).collect();
        let at = *place.entry(levels.clone()).or_insert(rows.len());
        if at == rows.len() {
            rows.push((levels, Vec::new()));
        }
        rows[at].1.push(cell);
    }
    rows
}

fn time(cell: Option<&CellSummary>) -> Cell {
    match cell.and_then(|cell| Some((cell, cell.load_ms?))) {
        Some((cell, ms)) => {
            let mark = if cell.failed + cell.invalid > 0 {
                "!"
            } else {
                ""
            };
            Cell::number(format_args!("{mark}{ms:.0}"))
        }
        None => Cell::number("–").styled(DIM),
    }
}

fn ratio(ratio: Option<f64>) -> Cell {
    let Some(ratio) = ratio else {
        return Cell::number("–").styled(DIM);
    };
    let style = match ratio {
        ratio if ratio < 1.0 - EVEN => GOOD,
        ratio if ratio > 1.0 + EVEN => BAD,
        _ => DIM,
    };
    Cell::number(format_args!("{ratio:.2}")).styled(style)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(key: &str, load_ms: f64, failed: usize) -> CellSummary {
        let levels = key.split(',').map(|part| {
            let (name, level) = part
                .split_once('=')
                .expect("each part of the key is name=level");
            (name.to_owned(), level.to_owned())
        });
        CellSummary {
            cell: key.to_owned(),
            runs: 1,
            failed,
            invalid: 0,
            dom_content_loaded_ms: None,
            load_ms: Some(load_ms),
            fastest_ms: None,
            slowest_ms: None,
            time_on_wire_ms: None,
            levels: levels.collect(),
        }
    }

    #[test]
    fn varied_factors_are_columns_and_constants_one_line() {
        let cells = [
            cell("page=flags,protocol=http,network=dsl,loss=0", 200.0, 0),
            cell("page=flags,protocol=spdy,network=dsl,loss=0", 100.0, 0),
            cell("page=flags,protocol=http,network=dsl,loss=1%", 400.0, 1),
        ];
        assert_eq!(constant(&cells), "page=flags network=dsl");
        let table = render(&cells).to_string();
        assert_eq!(
            anstream::adapter::strip_str(&table).to_string(),
            "\
loss  http  spdy  ratio
0      200   100   0.50
1%    !400     –      –"
        );
    }
}
