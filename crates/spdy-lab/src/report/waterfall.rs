//! Waterfalls: a row for each resource, from the moment the page wanted it to its last byte.
//!
//! ```text
//! logo.png   ····▒▒▓▓████░░░░░░■■■■
//!            wanted  |connect    |receive
//!                dns    tls  wait
//! ```

use std::fmt::{self, Write};

use spdy_clock::Instant;

use super::standings::{Entrant, OverNetwork};
use super::text::{Bytes, Millis, Text, ticks};
use super::times::{class_of, tick_label};
use crate::measure::{Load, Row, Span};

const WIDTH: f64 = 480.0;
const RIGHT: f64 = 474.0;
/// Room for names, and for none.
const LEFT_NAMED: f64 = 128.0;
const LEFT_BARE: f64 = 6.0;
const HEAD: f64 = 16.0;
/// More rows than this are drawn thin, and without names.
const MAX_NAMED_ROWS: usize = 64;
const ROW_NAMED: f64 = 11.0;
const ROW_BARE: f64 = 4.0;
/// Characters of a name that fit beside the rows.
const NAME_CHARS: usize = 24;

/// The phases in the order of time: CSS class and name.
const PHASES: [(&str, &str); 6] = [
    ("queued", "queued"),
    ("dns", "name look-up"),
    ("connect", "TCP connect"),
    ("tls", "TLS"),
    ("wait", "wait"),
    ("receive", "receive"),
];

/// What the colours mean.
pub(super) fn legend(out: &mut String) -> fmt::Result {
    write!(out, "<p class=\"legend\">")?;
    for (class, name) in PHASES {
        write!(out, "<span><i class=\"{class}\"></i>{name}</span> ")?;
    }
    write!(
        out,
        "<span><i class=\"dcl-mark\"></i>DOMContentLoaded</span> <span><i class=\"load-mark\"></i>load</span></p>"
    )
}

/// The waterfalls of all protocols of one race, on the same scale of time.
pub(super) fn side_by_side(
    out: &mut String,
    id: &str,
    replica: &str,
    over: &OverNetwork<'_>,
) -> fmt::Result {
    let end = over
        .entrants
        .iter()
        .map(|entrant| end_of(entrant.typical()))
        .fold(f64::MIN_POSITIVE, f64::max);
    let named = over
        .entrants
        .iter()
        .all(|entrant| is_named(entrant.typical()));
    write!(
        out,
        "<div class=\"waterfalls {}\">",
        if named { "named" } else { "bare" }
    )?;
    for entrant in over
        .entrants
        .iter()
        .filter(|entrant| !entrant.typical().waterfall.is_empty())
    {
        let id = format!("{id}-{}", class_of(entrant.protocol));
        one(out, &id, replica, over.network, entrant, end)?;
    }
    write!(out, "</div>")
}

/// Whether there is room for a name beside each row.
fn is_named(load: &Load) -> bool {
    load.waterfall.len() <= MAX_NAMED_ROWS
}

/// When the last thing of `load` happened, in milliseconds.
fn end_of(load: &Load) -> f64 {
    load.waterfall
        .iter()
        .map(|row| row.done.as_millis_f64())
        .fold(load.load_ms, f64::max)
}

fn one(
    out: &mut String,
    id: &str,
    replica: &str,
    network: &str,
    entrant: &Entrant<'_>,
    end: f64,
) -> fmt::Result {
    let load = entrant.typical();
    let named = is_named(load);
    let (left, row_height) = if named {
        (LEFT_NAMED, ROW_NAMED)
    } else {
        (LEFT_BARE, ROW_BARE)
    };
    let bottom = HEAD + row_height * load.waterfall.len() as f64;
    let x = |ms: f64| left + ms / end * (RIGHT - left);
    write!(
        out,
        "<figure><figcaption class=\"{class}\"><b>{protocol}</b> {load_ms} ms<small>{requests} requests, {connections} connections</small></figcaption>\
         <svg class=\"waterfall\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">Waterfall of {replica} over {protocol}, {network}</title>\
         <desc id=\"{id}-d\">{requests} requests on {connections} connections; DOMContentLoaded at {dcl} ms, load at {load_ms} ms. \
         The table below has a row for each.</desc>",
        class = class_of(entrant.protocol),
        protocol = Text(entrant.protocol),
        replica = Text(replica),
        network = Text(network),
        load_ms = Millis(load.load_ms),
        dcl = Millis(load.dom_content_loaded_ms),
        requests = load.requests,
        connections = load.connections,
        height = bottom + 4.0,
    )?;
    for mark in ticks(end) {
        write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {HEAD}V{bottom}\"/><text class=\"axis\" x=\"{x:.1}\" y=\"12\">{label}</text>",
            x = x(mark),
            label = tick_label(mark, end),
        )?;
    }
    for (number, row) in load.waterfall.iter().enumerate() {
        let top = HEAD + row_height * number as f64;
        draw_row(out, row, named, top, row_height, x)?;
    }
    for (class, at) in [
        ("dcl-line", load.dom_content_loaded_ms),
        ("load-line", load.load_ms),
    ] {
        write!(
            out,
            "<path class=\"{class}\" d=\"M{:.1} {HEAD}V{bottom}\"/>",
            x(at)
        )?;
    }
    write!(out, "</svg>")?;
    table(out, load)?;
    write!(out, "</figure>")
}

fn draw_row(
    out: &mut String,
    row: &Row,
    named: bool,
    top: f64,
    height: f64,
    x: impl Fn(f64) -> f64,
) -> fmt::Result {
    write!(
        out,
        "<g><title>{url}\n{kind}, {status}, {bytes}, connection {connection}, priority {priority}\nwanted at {wanted} ms",
        url = Text(&row.url),
        kind = row.kind.name(),
        status = row.status,
        bytes = Bytes(row.body_bytes),
        connection = row.connection,
        priority = row.priority,
        wanted = Millis(row.wanted.as_millis_f64()),
    )?;
    for ((_, name), span) in PHASES.iter().zip(spans(row)) {
        if let Some((from, to)) = span {
            write!(
                out,
                ", {name} {}",
                Millis(to.as_millis_f64() - from.as_millis_f64())
            )?;
        }
    }
    write!(
        out,
        "; done at {}</title><rect class=\"hit\" x=\"0\" y=\"{top}\" width=\"{WIDTH}\" height=\"{height}\"/>",
        Millis(row.done.as_millis_f64())
    )?;
    if named {
        write!(
            out,
            "<text class=\"name\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT_NAMED - 5.0,
            top + height / 2.0,
            name_of(row)
        )?;
    }
    let gap = if named { 1.5 } else { 0.4 };
    for ((class, _), span) in PHASES.iter().zip(spans(row)) {
        let Some((from, to)) = span else { continue };
        let (from, to) = (x(from.as_millis_f64()), x(to.as_millis_f64()));
        let (y, h) = if *class == "queued" {
            (top + height / 2.0 - 0.5, 1.0)
        } else {
            (top + gap, height - 2.0 * gap)
        };
        write!(
            out,
            "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{h:.1}\"/>",
            (to - from).max(0.3)
        )?;
    }
    write!(out, "</g>")
}

/// When each of [`PHASES`] happened, if it did.
fn spans(row: &Row) -> [Option<Span>; 6] {
    let setup_from = [row.dns, row.connect, row.tls]
        .into_iter()
        .flatten()
        .map(|(from, _)| from)
        .min();
    let queued_to = setup_from.unwrap_or(row.sent).max(row.wanted);
    let some = |from: Instant, to: Instant| (to > from).then_some((from, to));
    [
        some(row.wanted, queued_to),
        row.dns,
        row.connect,
        row.tls,
        some(row.sent, row.first_byte),
        Some((row.first_byte.min(row.done), row.done)),
    ]
}

/// The last part of the path that says something, short enough to stand beside the row.
fn name_of(row: &Row) -> String {
    let bare = row.url.split(['?', '#']).next().unwrap_or_default();
    let bare = bare.split_once("://").map_or(bare, |(_, rest)| rest);
    let name = match bare.trim_end_matches('/').rsplit_once('/') {
        Some((_, name)) => name,
        None => bare,
    };
    let short: String = name.chars().take(NAME_CHARS).collect();
    let cut = if name.chars().nth(NAME_CHARS).is_some() {
        "…"
    } else {
        ""
    };
    format!("{}{cut}", Text(&short))
}

/// The same rows as numbers. End tags that HTML lets out are left out: a report holds thousands of cells.
fn table(out: &mut String, load: &Load) -> fmt::Result {
    write!(
        out,
        "<details><summary>as a table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Requests over {}\">\
         <table class=\"rows\"><thead><tr><th>URL<th>kind<th>status<th>bytes<th>connection<th>priority<th>wanted ms",
        Text(&load.protocol)
    )?;
    for (_, name) in PHASES {
        write!(out, "<th>{name}")?;
    }
    write!(out, "<th>done ms</thead><tbody>")?;
    for row in &load.waterfall {
        write!(
            out,
            "<tr><th scope=\"row\">{}<td>{}<td>{}<td>{}<td>{}<td>{}<td>{}",
            Text(&row.url),
            row.kind.name(),
            row.status,
            row.body_bytes,
            row.connection,
            row.priority,
            Millis(row.wanted.as_millis_f64()),
        )?;
        for span in spans(row) {
            match span {
                Some((from, to)) => write!(
                    out,
                    "<td>{}",
                    Millis(to.as_millis_f64() - from.as_millis_f64())
                )?,
                None => write!(out, "<td>")?,
            }
        }
        write!(out, "<td>{}", Millis(row.done.as_millis_f64()))?;
    }
    write!(out, "</tbody></table></div></details>")
}
