//! Each trial as a dot: its load time by the first protocol from left to right, by another from bottom to top. Below the
//! midline the other one is faster. (Belshe's chart of 2011.)

use std::fmt::{self, Write};

use super::data::Data;
use crate::report::text::{Millis, Text};
use crate::report::times::class_of;

const SIZE: f64 = 320.0;
const LEFT: f64 = 44.0;
const BOTTOM: f64 = 276.0;
const RIGHT: f64 = 300.0;
const TOP: f64 = 12.0;

/// A panel for each protocol but the first.
pub(super) fn panels(out: &mut String, data: &Data) -> fmt::Result {
    let reference = data.reference();
    let times = || {
        data.trials
            .iter()
            .flat_map(|trial| trial.cells.iter().map(|cell| cell.load_ms))
            .filter(|ms| *ms > 0.0)
    };
    let least = times().fold(f64::INFINITY, f64::min);
    let most = times().fold(0.0, f64::max);
    if least >= most {
        return Ok(());
    }
    let (first, last) = (least.log10().floor(), most.log10().ceil());
    let part = |ms: f64| (ms.log10() - first) / (last - first);
    let x = |ms: f64| LEFT + part(ms) * (RIGHT - LEFT);
    let y = |ms: f64| BOTTOM - part(ms) * (BOTTOM - TOP);
    write!(out, "<div class=\"panels\">")?;
    for (number, protocol) in data.protocols.iter().enumerate().skip(1) {
        let dots: Vec<_> = data
            .trials
            .iter()
            .filter_map(|trial| Some((trial, trial.cell(reference)?, trial.cell(protocol)?)))
            .filter(|(_, a, b)| a.load_ms > 0.0 && b.load_ms > 0.0)
            .collect();
        let faster = dots
            .iter()
            .filter(|(_, a, b)| b.load_ms < a.load_ms)
            .count();
        write!(
            out,
            "<figure><figcaption>{protocol} against {reference}: faster in {faster} of {count}</figcaption>\
             <svg viewBox=\"0 0 {SIZE} {SIZE}\" role=\"img\" aria-labelledby=\"scatter-{number}-t scatter-{number}-d\">\
             <title id=\"scatter-{number}-t\">{protocol} against {reference}</title>\
             <desc id=\"scatter-{number}-d\">A dot a trial; {protocol} is faster in {faster} of {count}, below the midline.</desc>",
            protocol = Text(protocol),
            reference = Text(reference),
            count = dots.len(),
        )?;
        for power in first as i32..=last as i32 {
            let ms = 10_f64.powi(power);
            let label = if ms >= 1000.0 {
                format!("{}\u{202f}s", ms / 1000.0)
            } else {
                format!("{ms}\u{202f}ms")
            };
            write!(
                out,
                "<path class=\"grid\" d=\"M{x:.1} {TOP}V{BOTTOM}M{LEFT} {y:.1}H{RIGHT}\"/>\
                 <text class=\"axis\" x=\"{x:.1}\" y=\"{under}\">{label}</text>\
                 <text class=\"axis y\" x=\"{before}\" y=\"{y:.1}\">{label}</text>",
                x = x(ms),
                y = y(ms),
                under = BOTTOM + 13.0,
                before = LEFT - 4.0,
            )?;
        }
        write!(
            out,
            "<path class=\"midline\" d=\"M{LEFT} {BOTTOM}L{RIGHT} {TOP}\"/><g class=\"{}\">",
            class_of(protocol)
        )?;
        for (trial, a, b) in dots {
            let levels: Vec<String> = trial
                .levels
                .iter()
                .filter(|(name, _)| data.factors.iter().any(|factor| factor.name == *name))
                .map(|(name, level)| format!("{name} {level}"))
                .collect();
            write!(
                out,
                "<circle class=\"dot faint\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\"><title>{}, {}: {} {} ms, {} {} ms</title></circle>",
                x(a.load_ms),
                y(b.load_ms),
                Text(&trial.page),
                Text(&levels.join(", ")),
                Text(reference),
                Millis(a.load_ms),
                Text(protocol),
                Millis(b.load_ms),
            )?;
        }
        write!(
            out,
            "</g><text class=\"axis\" x=\"{mid}\" y=\"{under}\">load by {reference}</text>\
             <text class=\"axis\" transform=\"translate(9 {high}) rotate(-90)\">load by {protocol}</text></svg></figure>",
            mid = f64::midpoint(LEFT, RIGHT),
            under = BOTTOM + 30.0,
            high = f64::midpoint(TOP, BOTTOM),
            reference = Text(reference),
            protocol = Text(protocol),
        )?;
    }
    write!(out, "</div>")
}
