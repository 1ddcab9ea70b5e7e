//! Load times as bars: a panel for each network, each with its own axis.

use std::fmt::{self, Write};

use spdy_sim::race_results::{NetworkRace, PageRace};

use crate::drawing::shape_style::ProtocolStyle;
use crate::text::{Millis, Ratio, Text, TimeUnit, ticks};

/// Width in units of the drawing; the page scales it to the available width.
const WIDTH: f64 = 360.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 252.0;
const ROW: f64 = 26.0;
const BAR: f64 = 15.0;
const AXIS: f64 = 18.0;

/// Writes a panel for each network of `page`; `id` makes the names of its pictures unique.
pub(crate) fn panels(out: &mut String, id: &str, page: &PageRace<'_>) -> fmt::Result {
    write!(out, "<div class=\"panels\">")?;
    for (number, over) in page.networks.iter().enumerate() {
        panel(out, &format!("{id}-{number}"), page.replica, over)?;
    }
    write!(out, "</div>")
}

fn panel(out: &mut String, id: &str, replica: &str, over: &NetworkRace<'_>) -> fmt::Result {
    let end = over.slowest_ms().max(f64::MIN_POSITIVE);
    let x = |ms: f64| LEFT + ms / end * (RIGHT - LEFT);
    let bottom = ROW * over.protocols.len() as f64;
    write!(
        out,
        "<figure><figcaption>{network}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">Load times of {replica} over {network}</title><desc id=\"{id}-d\">",
        network = Text(over.network),
        replica = Text(replica),
        height = bottom + AXIS,
    )?;
    for entrant in &over.protocols {
        let load = entrant.typical();
        write!(
            out,
            "{}: DOMContentLoaded {} ms, load {} ms. ",
            Text(entrant.protocol),
            Millis(load.dom_content_loaded_ms),
            Millis(load.load_ms)
        )?;
    }
    write!(out, "</desc>")?;
    for mark in ticks(end) {
        write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} 0V{bottom}\"/><text class=\"axis\" x=\"{x:.1}\" y=\"{y}\">{label}</text>",
            x = x(mark),
            y = bottom + 12.0,
            label = tick_label(mark, end),
        )?;
    }
    for (row, entrant) in over.protocols.iter().enumerate() {
        let load = entrant.typical();
        let (top, middle) = (
            ROW * row as f64 + (ROW - BAR) / 2.0,
            ROW * (row as f64 + 0.5),
        );
        let (fastest, slowest) = (entrant.fastest().load_ms, entrant.slowest().load_ms);
        write!(
            out,
            "<g class=\"{class}\"><title>{name}: DOMContentLoaded {dcl} ms, load {ms} ms (of {runs}: {fastest} to {slowest} ms)</title>\
             <text class=\"name\" x=\"{label}\" y=\"{middle}\">{name}</text>\
             <rect class=\"bar\" x=\"{LEFT}\" y=\"{top}\" width=\"{width:.1}\" height=\"{BAR}\" rx=\"2\"/>\
             <path class=\"dcl\" d=\"M{at:.1} {top}v{BAR}\"/>",
            class = class_of(entrant.protocol),
            name = Text(entrant.protocol),
            dcl = Millis(load.dom_content_loaded_ms),
            ms = Millis(load.load_ms),
            runs = entrant.loads.len(),
            fastest = Millis(fastest),
            slowest = Millis(slowest),
            label = LEFT - 6.0,
            width = x(load.load_ms) - LEFT,
            at = x(load.dom_content_loaded_ms),
        )?;
        if slowest > fastest {
            write!(
                out,
                "<path class=\"range\" d=\"M{:.1} {middle}H{:.1}\"/>",
                x(fastest),
                x(slowest)
            )?;
        }
        write!(
            out,
            "<text class=\"value\" x=\"{}\" y=\"{middle}\">{}\u{202f}ms <tspan class=\"ratio\">{}</tspan></text></g>",
            x(slowest) + 5.0,
            Millis(load.load_ms),
            Ratio(over.ratio(entrant)),
        )?;
    }
    write!(out, "</svg></figure>")
}

/// The CSS class of a protocol's colour.
pub(crate) fn class_of(protocol: &str) -> &'static str {
    ProtocolStyle::of(protocol).class
}

/// Formats `mark` milliseconds with the unit of an axis that ends at `end`.
pub(crate) fn tick_label(mark: f64, end: f64) -> String {
    let unit = TimeUnit::of(end);
    match mark {
        0.0 => "0".to_owned(),
        mark => format!("{}\u{202f}{}", unit.format(mark), unit.symbol()),
    }
}
