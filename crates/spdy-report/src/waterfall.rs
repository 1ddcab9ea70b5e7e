//! Waterfalls: a row for each resource, from the time the page needed it to its last byte.
//!
//! ```text
//! logo.png   ····▒▒▓▓████░░░░░░■■■■
//!            needed  |connect    |receive
//!                dns    tls  wait
//! ```

use std::fmt::{self, Write};

use spdy_clock::Instant;
use spdy_sim::load::{Load, Span, WaterfallRow};

use crate::drawing::figure::Figure;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{Phase, ShapeStyle, TextStyle};
use crate::text::{Bytes, Millis, Text, ticks};
use crate::times::{class_of, tick_label};

const WIDTH: f64 = 480.0;
const RIGHT: f64 = 474.0;
/// Left edge of the bars in rows with names; [`LEFT_BARE`] is for rows without.
const LEFT_NAMED: f64 = 128.0;
const LEFT_BARE: f64 = 6.0;
const HEAD: f64 = 16.0;
/// Drawings with more rows have thin rows without names.
const MAX_NAMED_ROWS: usize = 64;
const ROW_NAMED: f64 = 11.0;
const ROW_BARE: f64 = 4.0;
/// Maximum number of characters of a name beside its row.
const NAME_CHARS: usize = 24;

/// Writes the legend.
pub(crate) fn legend(out: &mut String) -> fmt::Result {
    write!(out, "<p class=\"legend\">")?;
    for phase in Phase::ALL {
        write!(
            out,
            "<span><i class=\"{}\"></i>{}</span> ",
            phase.class(),
            phase.name()
        )?;
    }
    write!(
        out,
        "<span><i class=\"dcl-mark\"></i>DOMContentLoaded</span> <span><i class=\"load-mark\"></i>load</span></p>"
    )
}

/// Writes the waterfalls of one page under the same conditions on the same time scale, one for each protocol; `over` names the
/// conditions.
pub(crate) fn side_by_side(out: &mut String, id: &str, over: &str, loads: &[&Load]) -> fmt::Result {
    let replica = loads.first().map_or("", |load| &load.replica);
    let (figure, loads) = figure(&["waterfall", replica], over, loads);
    let class = if figure.class == "waterfall named" {
        "named"
    } else {
        "bare"
    };
    write!(
        out,
        "<div class=\"waterfalls {class}\" data-figure=\"{}\">",
        figure.stem
    )?;
    for (number, (panel, load)) in figure.panels.iter().zip(loads).enumerate() {
        write!(
            out,
            "<figure><figcaption class=\"{class}\"><b>{protocol}</b> {load_ms} ms<small>{requests}, {connections}</small></figcaption>",
            class = class_of(&load.protocol),
            protocol = Text(&load.protocol),
            load_ms = Millis(load.load_ms),
            requests = format_count(load.requests, "request"),
            connections = format_count(load.connections, "connection"),
        )?;
        write!(
            out,
            "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"Waterfall over {}\">",
            Text(&load.protocol)
        )?;
        panel.write_html(out, &format!("{id}-{number}"), figure.class)?;
        write!(out, "</div>")?;
        table(out, load)?;
        write!(out, "</figure>")?;
    }
    write!(out, "</div>")
}

/// The same as a figure, with the loads in it: a load without requests has no waterfall.
pub(crate) fn figure<'a>(
    words: &[&str],
    over: &str,
    loads: &[&'a Load],
) -> (Figure, Vec<&'a Load>) {
    let loads: Vec<&Load> = loads
        .iter()
        .copied()
        .filter(|load| !load.waterfall.is_empty())
        .collect();
    let end = loads
        .iter()
        .map(|load| end_of(load))
        .fold(f64::MIN_POSITIVE, f64::max);
    let named = loads
        .iter()
        .all(|load| load.waterfall.len() <= MAX_NAMED_ROWS);
    let title = match loads.first() {
        Some(load) => format!("Waterfalls of {}, {over}", load.replica),
        None => format!("Waterfalls, {over}"),
    };
    let columns = match loads.len() {
        4 => 2,
        few => few.clamp(1, 3),
    };
    let mut figure = Figure::new(words, title, columns);
    figure.class = if named {
        "waterfall named"
    } else {
        "waterfall"
    };
    let phases = Phase::ALL.map(|phase| (ShapeStyle::Phase(phase), phase.name().to_owned()));
    figure.legend = phases.to_vec();
    figure
        .legend
        .push((ShapeStyle::Dcl, "DOMContentLoaded".to_owned()));
    figure.legend.push((ShapeStyle::Load, "load".to_owned()));
    figure.panels = loads
        .iter()
        .map(|load| one(load, over, named, end))
        .collect();
    (figure, loads)
}

/// Time of the last event of `load`, in milliseconds.
fn end_of(load: &Load) -> f64 {
    load.waterfall
        .iter()
        .map(|row| row.done.as_millis_f64())
        .fold(load.load_ms, f64::max)
}

/// Formats a count with its noun: `1 connection`, `3 connections`.
pub(crate) fn format_count(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn one(load: &Load, over: &str, named: bool, end: f64) -> Panel {
    let (left, row_height) = if named {
        (LEFT_NAMED, ROW_NAMED)
    } else {
        (LEFT_BARE, ROW_BARE)
    };
    let bottom = HEAD + row_height * load.waterfall.len() as f64;
    let x = |ms: f64| left + ms / end * (RIGHT - left);
    let mut panel = Panel::new(WIDTH, bottom + 4.0);
    let (replica, protocol, load_ms) = (&load.replica, &load.protocol, Millis(load.load_ms));
    let requests = format_count(load.requests, "request");
    let connections = format_count(load.connections, "connection");
    panel.caption = format!("{replica} over {protocol}: {load_ms} ms, {requests}, {connections}");
    panel.title = format!("Waterfall of {replica} over {protocol}, {over}");
    panel.description = format!(
        "{requests} on {connections}; DOMContentLoaded at {} ms, load at {load_ms} ms.\nThe table below has a row for each.",
        Millis(load.dom_content_loaded_ms),
    );
    for mark in ticks(end) {
        panel.path(
            ShapeStyle::Grid,
            format!("M{:.1} {HEAD}V{bottom}", x(mark)),
            "",
        );
        // A label at the right end would be cut.
        panel.text(
            TextStyle::Axis,
            x(mark).min(RIGHT - 10.0),
            8.0,
            tick_label(mark, end),
        );
    }
    for (number, row) in load.waterfall.iter().enumerate() {
        let top = HEAD + row_height * number as f64;
        panel.group(about(row), |panel| {
            draw_row(panel, row, named, (top, row_height), &x);
        });
    }
    for (ink, at) in [
        (ShapeStyle::Dcl, load.dom_content_loaded_ms),
        (ShapeStyle::Load, load.load_ms),
    ] {
        panel.path(ink, format!("M{:.1} {HEAD}V{bottom}", x(at)), "");
    }
    panel
}

/// Describes a row in words.
fn about(row: &WaterfallRow) -> String {
    let mut about = format!(
        "{}\n{}, {}, {}, connection {}, priority {}\nwanted at {} ms",
        row.url,
        row.kind.name(),
        row.status,
        Bytes(row.body_bytes),
        row.connection,
        row.priority,
        Millis(row.needed.as_millis_f64()),
    );
    for (phase, span) in Phase::ALL.iter().zip(spans(row)) {
        if let Some(span) = span {
            about.push_str(&format!(", {} {}", phase.name(), length(span)));
        }
    }
    about.push_str(&format!("; done at {}", Millis(row.done.as_millis_f64())));
    about
}

fn length((from, to): Span) -> Millis {
    Millis(to.as_millis_f64() - from.as_millis_f64())
}

fn draw_row(
    panel: &mut Panel,
    row: &WaterfallRow,
    named: bool,
    (top, height): (f64, f64),
    x: &impl Fn(f64) -> f64,
) {
    panel.rect(ShapeStyle::HitArea, [0.0, top, WIDTH, height], "");
    let middle = top + height / 2.0;
    if named {
        panel.text(TextStyle::Small, LEFT_NAMED - 5.0, middle, name_of(row));
    }
    let gap = if named { 1.5 } else { 0.4 };
    for (phase, span) in Phase::ALL.into_iter().zip(spans(row)) {
        let Some((from, to)) = span else { continue };
        let (from, to) = (x(from.as_millis_f64()), x(to.as_millis_f64()));
        let (y, h) = match phase {
            Phase::Queued => (middle - 0.5, 1.0),
            _ => (top + gap, height - 2.0 * gap),
        };
        panel.rect(
            ShapeStyle::Phase(phase),
            [from, y, (to - from).max(0.3), h],
            "",
        );
    }
}

/// Start and end of each phase; `None` for a phase that did not happen.
fn spans(row: &WaterfallRow) -> [Option<Span>; 6] {
    let setup_from = [row.dns, row.connect, row.tls]
        .into_iter()
        .flatten()
        .map(|(from, _)| from)
        .min();
    let queued_to = setup_from.unwrap_or(row.sent).max(row.needed);
    let some = |from: Instant, to: Instant| (to > from).then_some((from, to));
    [
        some(row.needed, queued_to),
        row.dns,
        row.connect,
        row.tls,
        some(row.sent, row.first_byte),
        Some((row.first_byte.min(row.done), row.done)),
    ]
}

/// The last segment of the path that is not empty, shortened to fit beside the row.
fn name_of(row: &WaterfallRow) -> String {
    let bare = row.url.split(['?', '#']).next().unwrap_or_default();
    let bare = bare.split_once("://").map_or(bare, |(_, rest)| rest);
    let name = match bare.trim_end_matches('/').rsplit_once('/') {
        Some((_, name)) => name,
        None => bare,
    };
    let mut short: String = name.chars().take(NAME_CHARS).collect();
    if name.chars().nth(NAME_CHARS).is_some() {
        short.push('…');
    }
    short
}

/// Writes the rows as numbers. Optional end tags of HTML are omitted: a report has thousands of cells.
fn table(out: &mut String, load: &Load) -> fmt::Result {
    write!(
        out,
        "<details><summary>as a table</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Requests over {}\">\
         <table class=\"rows\"><thead><tr><th>URL<th>kind<th>status<th>bytes<th>connection<th>priority<th>needed ms",
        Text(&load.protocol)
    )?;
    for phase in Phase::ALL {
        write!(out, "<th>{}", phase.name())?;
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
            Millis(row.needed.as_millis_f64()),
        )?;
        for span in spans(row) {
            match span {
                Some(span) => write!(out, "<td>{}", length(span))?,
                None => write!(out, "<td>")?,
            }
        }
        write!(out, "<td>{}", Millis(row.done.as_millis_f64()))?;
    }
    write!(out, "</tbody></table></div></details>")
}
