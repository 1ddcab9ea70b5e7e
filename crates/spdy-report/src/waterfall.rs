//! Waterfalls: a row for each resource, from the time the page needed it to its last byte.
//!
//! ```text
//! example.org   logo.png   ····▒▒▓▓████░░░░░░■■■■
//!                          needed  |connect    |receive
//!                              dns    tls  wait
//! ```

use std::fmt::{self, Write};

use spdy_clock::Instant;
use spdy_sim::load::{Load, Span, WaterfallRow};

use crate::drawing::figure::Figure;
use crate::drawing::letters::{shorten, shorten_start, width};
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{LegendAttributes, Phase, ShapeStyle, TextStyle};
use crate::text::{Bytes, Millis, Text, ticks};
use crate::times::{class_of, tick_label};

/// Right edge of the bars; [`RIGHT_MARGIN`] is beside them.
const RIGHT_MARGIN: f64 = 6.0;
const HEAD: f64 = 16.0;
/// Drawings with more rows have thin rows without names.
const MAX_NAMED_ROWS: usize = 64;

/// How rows are drawn: with host and name, or thin.
#[derive(Clone, Copy)]
struct Layout {
    named: bool,
    width: f64,
    /// Left edge of the bars.
    left: f64,
    row_height: f64,
}

impl Layout {
    const NAMED: Self = Self {
        named: true,
        width: 600.0,
        left: 236.0,
        row_height: 11.0,
    };
    const THIN: Self = Self {
        named: false,
        width: 480.0,
        left: 112.0,
        row_height: 4.0,
    };

    const fn of(named: bool) -> Self {
        if named { Self::NAMED } else { Self::THIN }
    }

    const fn right(self) -> f64 {
        self.width - RIGHT_MARGIN
    }
}

/// Maximum width of a host beside its row.
const HOST_WIDTH: f64 = 106.0;
/// Maximum width of a name between the host and the bars.
const NAME_WIDTH: f64 = 118.0;
/// Height that the host of thin rows needs.
const HOST_HEIGHT: f64 = 9.0;

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
    for (style, name) in MARKS {
        write!(
            out,
            "<span><i {}></i>{name}</span> ",
            LegendAttributes(style)
        )?;
    }
    write!(out, "</p>")
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
    let marks = MARKS.map(|(style, name)| (style, name.to_owned()));
    figure.legend.extend(marks);
    figure.panels = loads
        .iter()
        .map(|load| one(load, over, Layout::of(named), end))
        .collect();
    (figure, loads)
}

/// Marks of a load in its waterfall, and their names. A load without a paint lacks its mark.
const MARKS: [(ShapeStyle, &str); 4] = [
    (ShapeStyle::Fcp, "first contentful paint"),
    (ShapeStyle::Lcp, "largest contentful paint"),
    (ShapeStyle::Dcl, "DOMContentLoaded"),
    (ShapeStyle::Load, "load"),
];

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

fn one(load: &Load, over: &str, layout: Layout, end: f64) -> Panel {
    let Layout {
        left, row_height, ..
    } = layout;
    let right = layout.right();
    let bottom = HEAD + row_height * load.waterfall.len() as f64;
    let x = |ms: f64| left + ms / end * (right - left);
    let mut panel = Panel::new(layout.width, bottom.max(HEAD + HOST_HEIGHT) + 4.0);
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
        let label = tick_label(mark, end);
        let half = width(&label, TextStyle::Axis.size()) / 2.0;
        let middle = x(mark).min(layout.width - half);
        panel.text(TextStyle::Axis, middle, 8.0, label);
    }
    let hosts = shown_hosts(load, layout);
    for (number, row) in load.waterfall.iter().enumerate() {
        let top = HEAD + row_height * number as f64;
        panel.group(about(row), |panel| {
            draw_row(panel, row, layout, top, &x);
            if let Some(host) = hosts[number] {
                let host = shorten_start(host, TextStyle::Host.size(), HOST_WIDTH);
                let middle = top + row_height.max(HOST_HEIGHT) / 2.0;
                panel.text(TextStyle::Host, 0.0, middle, host);
            }
        });
    }
    let times = [
        load.fcp_ms,
        load.lcp_ms,
        Some(load.dom_content_loaded_ms),
        Some(load.load_ms),
    ];
    for ((style, _), at) in MARKS.into_iter().zip(times) {
        if let Some(at) = at {
            panel.path(style, format!("M{:.1} {HEAD}V{bottom}", x(at)), "");
        }
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

/// The host beside each row. Thin rows have no room for each: their host is stated where it changes, and there is room.
fn shown_hosts(load: &Load, layout: Layout) -> Vec<Option<&str>> {
    let mut last: Option<(usize, &str)> = None;
    let rows = load.waterfall.iter().enumerate();
    let shown = rows.map(|(number, row)| {
        let host = host_of(row);
        let has_room = last.is_none_or(|(shown_at, shown)| {
            shown != host && (number - shown_at) as f64 * layout.row_height >= HOST_HEIGHT
        });
        if !layout.named && !has_room {
            return None;
        }
        last = Some((number, host));
        Some(host)
    });
    shown.collect()
}

fn draw_row(
    panel: &mut Panel,
    row: &WaterfallRow,
    layout: Layout,
    top: f64,
    x: &impl Fn(f64) -> f64,
) {
    let height = layout.row_height;
    panel.rect(ShapeStyle::HitArea, [0.0, top, layout.width, height], "");
    let middle = top + height / 2.0;
    if layout.named {
        let name = shorten(name_of(row), TextStyle::Small.size(), NAME_WIDTH);
        panel.text(TextStyle::Small, layout.left - 5.0, middle, name);
    }
    let gap = if layout.named { 1.5 } else { 0.4 };
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

/// The last segment of the path that is not empty; `/` for the root.
fn name_of(row: &WaterfallRow) -> &str {
    let bare = without_scheme(row).trim_end_matches('/');
    bare.rsplit_once('/').map_or("/", |(_, name)| name)
}

/// The host and its port.
fn host_of(row: &WaterfallRow) -> &str {
    let bare = without_scheme(row);
    bare.split('/').next().unwrap_or(bare)
}

/// The URL without its scheme, query and fragment.
fn without_scheme(row: &WaterfallRow) -> &str {
    let bare = row.url.split(['?', '#']).next().unwrap_or_default();
    bare.split_once("://").map_or(bare, |(_, rest)| rest)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::tests::load;

    fn load_of(urls: &[&str]) -> Load {
        let mut load = load("portal", "dsl", "http", 900.0);
        let row = load.waterfall[0].clone();
        load.waterfall = urls
            .iter()
            .map(|url| WaterfallRow {
                url: (*url).to_owned(),
                ..row.clone()
            })
            .collect();
        load
    }

    #[test]
    fn rows_have_host_and_name() {
        let load = load_of(&[
            "https://www.example.org/",
            "https://cdn.example.org:8443/a/logo.png?size=2",
            "//bare",
        ]);
        let shown: Vec<_> = load
            .waterfall
            .iter()
            .map(|row| (host_of(row), name_of(row)))
            .collect();
        assert_eq!(
            shown,
            [
                ("www.example.org", "/"),
                ("cdn.example.org:8443", "logo.png"),
                ("", "bare")
            ]
        );
        let hosts = shown_hosts(&load, Layout::NAMED);
        assert!(hosts.iter().all(Option::is_some), "{hosts:?}");
        let (figure, _) = figure(&["waterfall"], "dsl", &[&load]);
        let svg = figure.to_svg("");
        for text in [
            ">www.example.org<",
            ">/<",
            ">cdn.example.org:8443<",
            ">logo.png<",
        ] {
            assert!(svg.contains(text), "no {text}");
        }
    }

    #[test]
    fn thin_rows_state_a_host_where_it_changes_and_there_is_room() {
        let urls: Vec<_> = (0..12)
            .map(|number| {
                if number < 6 {
                    "https://a/"
                } else {
                    "https://b/"
                }
            })
            .collect();
        let load = load_of(&urls);
        let shown: Vec<_> = shown_hosts(&load, Layout::THIN)
            .into_iter()
            .enumerate()
            .filter_map(|(number, host)| Some((number, host?)))
            .collect();
        assert_eq!(shown, [(0, "a"), (6, "b")]);
        let urls: Vec<_> = (0..4)
            .map(|number| {
                if number % 2 == 0 {
                    "https://a/"
                } else {
                    "https://b/"
                }
            })
            .collect();
        let load = load_of(&urls);
        let shown = shown_hosts(&load, Layout::THIN);
        assert_eq!(shown, [Some("a"), None, None, Some("b")]);
    }
}
