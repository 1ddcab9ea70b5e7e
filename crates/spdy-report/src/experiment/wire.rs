//! Traffic: connections, packets, bytes, and the saving by header compression, a bar for each protocol.

use spdy_lab::stats::median;

use super::data::{CellStats, ReportData};
use crate::drawing::figure::Figure;
use crate::drawing::panel::Panel;
use crate::drawing::shape_style::{ProtocolStyle, ShapeStyle, TextStyle};
use crate::text::{Bytes, Count};

const WIDTH: f64 = 250.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = 190.0;
const ROW: f64 = 26.0;
const BAR: f64 = 15.0;

/// A count of a cell, and its format.
struct WireAmount {
    name: &'static str,
    of: fn(&CellStats) -> Option<f64>,
    shown: fn(f64) -> String,
}

const MEASURES: [WireAmount; 3] = [
    WireAmount {
        name: "connections",
        of: |cell| cell.connections,
        shown: |count| Count(count.round() as u64).to_string(),
    },
    WireAmount {
        name: "packets",
        of: |cell| cell.packets,
        shown: |count| Count(count.round() as u64).to_string(),
    },
    WireAmount {
        name: "bytes",
        of: |cell| cell.bytes,
        shown: |bytes| Bytes(bytes.round() as u64).to_string(),
    },
];

/// The traffic of `page`; without panels if it was not counted.
pub(super) fn amounts(data: &ReportData, page: &str) -> Figure {
    let title = format!("Connections, packets, bytes and header savings of {page}");
    let mut figure = Figure::new(&["wire", page], title, 4);
    figure.legend_of(&data.protocols);
    let middle = |protocol: &str, of: &dyn Fn(&CellStats) -> Option<f64>| {
        let trials = data.trials.iter().filter(|trial| trial.page == page);
        median(
            trials
                .filter_map(|trial| trial.cell(protocol))
                .filter_map(of),
        )
    };
    for measure in MEASURES {
        let bars: Vec<Bar<'_>> = data
            .protocols
            .iter()
            .filter_map(|protocol| {
                let value = middle(protocol, &measure.of)?;
                Some(Bar {
                    protocol,
                    parts: vec![value],
                    shown: (measure.shown)(value),
                })
            })
            .collect();
        let end = bars.iter().map(|bar| bar.parts[0]).fold(0.0, f64::max);
        if end > 0.0 {
            figure.push(panel(page, measure.name, &bars, end));
        }
    }
    let saved = |protocol: &str, text: usize| {
        middle(protocol, &move |cell: &CellStats| {
            let heads = cell.header_bytes?;
            (heads[text] > 0.0).then(|| 1.0 - heads[text + 1] / heads[text])
        })
    };
    let bars: Vec<Bar<'_>> = data
        .protocols
        .iter()
        .filter_map(|protocol| {
            let parts = vec![saved(protocol, 0)?, saved(protocol, 2)?];
            let shown: Vec<_> = parts
                .iter()
                .map(|part| format!("{:.0}\u{202f}%", part * 100.0))
                .collect();
            Some(Bar {
                protocol,
                parts,
                shown: shown.join(", "),
            })
        })
        .collect();
    if !bars.is_empty() {
        figure.push(panel(page, "header bytes saved", &bars, 1.0));
    }
    figure
}

/// The traffic of one protocol: one amount, or one over another.
struct Bar<'a> {
    protocol: &'a str,
    parts: Vec<f64>,
    shown: String,
}

/// Draws bars from 0 to `end`.
fn panel(page: &str, what: &str, bars: &[Bar<'_>], end: f64) -> Panel {
    let bottom = ROW * bars.len() as f64;
    let mut panel = Panel::new(WIDTH, bottom + 6.0);
    panel.caption = format!("{page}: {what}");
    panel.title.clone_from(&panel.caption);
    panel.path(ShapeStyle::Grid, format!("M{LEFT} 0V{bottom}"), "");
    for (row, bar) in bars.iter().enumerate() {
        let tone = ProtocolStyle::of(bar.protocol);
        let middle = ROW * (row as f64 + 0.5);
        let wide = |value: f64| value.clamp(0.0, end) / end * (RIGHT - LEFT);
        let about = format!("{}: {}", bar.protocol, bar.shown);
        panel.description.push_str(&about);
        panel.description.push('\n');
        panel.group(about, |panel| {
            panel.text(TextStyle::Name, LEFT - 6.0, middle, bar.protocol);
            let high = BAR / bar.parts.len() as f64;
            for (number, (part, ink)) in bar
                .parts
                .iter()
                .zip([ShapeStyle::Bar(tone), ShapeStyle::Pale(tone)])
                .enumerate()
            {
                let top = middle - BAR / 2.0 + high * number as f64;
                panel.rect(ink, [LEFT, top, wide(*part), high], "");
            }
            let longest = bar.parts.iter().copied().fold(0.0, f64::max);
            panel.text(
                TextStyle::Value,
                LEFT + wide(longest) + 5.0,
                middle,
                bar.shown.clone(),
            );
        });
    }
    panel
}
