//! Prints the results of the race.

use std::fmt;
use std::io::{self, Write};

use serde_json::json;

use crate::course::{Cell, REFERENCE, TARGET_RATIO};
use crate::heat::{CellResult, Row, Series};

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            transport,
            load,
            file,
        } = self;
        write!(f, "{transport}, {load}, {} B", file.bytes)
    }
}

/// A line on stderr.
pub(crate) fn print_note(text: &str) {
    let _ = writeln!(io::stderr(), "race-peers: {text}");
}

/// Prints a cell: a table, or one JSON object per row. Write errors are ignored: the reader may have exited.
pub(crate) fn print_cell(cell: &Cell, heat: &CellResult, json: bool) {
    let (name, protocol) = REFERENCE;
    let is_reference = |row: &&Row| row.name == name && row.protocol == protocol;
    let reference = heat.rows.iter().find(is_reference);
    let mut out = io::stdout().lock();
    if !json {
        let _ = writeln!(
            out,
            "\n{cell}: CPU against {name} {protocol}, our SPDY/3.1 at most {TARGET_RATIO}\n\
             {:<20} {:>24} {:>28} {:>20} {:>8} {:>8}",
            "",
            "requests/s (min-max)",
            "CPU s/100,000 (min-max)",
            "ratio (min-max)",
            "p99 ms",
            "RSS MB",
        );
    }
    for row in &heat.rows {
        let ratio = reference.map(|reference| row.cpu.over(&reference.cpu));
        if json {
            let _ = writeln!(out, "{}", object(cell, row, ratio.as_ref()));
            continue;
        }
        let what = format!("{} {}", row.name, row.protocol);
        let _ = write!(
            out,
            "{what:<20} {:>24} {:>28} {:>20} {:>8.2} {:>8.0}",
            spread(&row.rate, 0),
            spread(&row.cpu, 3),
            ratio
                .as_ref()
                .map_or("-".to_owned(), |ratio| spread(ratio, 2)),
            row.p99.median(),
            row.resident_bytes as f64 / 1e6,
        );
        let _ = match row.wrong {
            0 => writeln!(out),
            wrong => writeln!(out, "  {wrong} WRONG"),
        };
    }
    let _ = out.flush();
}

/// Median, minimum and maximum.
pub(crate) fn spread(series: &Series, digits: usize) -> String {
    let (median, min, max) = (series.median(), series.min(), series.max());
    format!("{median:.digits$} ({min:.digits$}-{max:.digits$})")
}

fn object(cell: &Cell, row: &Row, ratio: Option<&Series>) -> serde_json::Value {
    let series = |series: &Series| json!({ "median": series.median(), "min": series.min(), "max": series.max() });
    json!({
        "lane": cell.transport.to_string(),
        "load": cell.load.to_string(),
        "file_bytes": cell.file.bytes,
        "server": row.name,
        "protocol": row.protocol.alpn(),
        "requests_per_second": series(&row.rate),
        "cpu_seconds_per_100000": series(&row.cpu),
        "cpu_ratio": ratio.map(series),
        "cpu_ratio_wanted": TARGET_RATIO,
        "generator_cpu_seconds_per_100000": series(&row.own),
        "p99_ms": series(&row.p99),
        "resident_bytes": row.resident_bytes,
        "wrong": row.wrong,
    })
}
