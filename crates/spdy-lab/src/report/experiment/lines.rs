//! Load time over a factor: a panel for each combination of the others, a line for each protocol.

use std::fmt::{self, Write};

use super::data::{Data, Factor, Trial};
use crate::report::text::{Millis, Text, ticks};
use crate::report::times::{class_of, tick_label};

/// The drawing's own units; the page scales it to the room there is.
const WIDTH: f64 = 360.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = 350.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 170.0;
const HEIGHT: f64 = 204.0;

/// Levels so far apart that equal steps stand for equal factors.
const LOGARITHMIC: f64 = 8.0;

/// Panels of `page` over `factor`.
pub(super) fn panels(
    out: &mut String,
    id: &str,
    data: &Data,
    page: &str,
    factor: &Factor,
) -> fmt::Result {
    write!(out, "<div class=\"panels\">")?;
    for (number, (caption, trials)) in data.panels(page, &[&factor.name]).iter().enumerate() {
        panel(
            out,
            &format!("{id}-{number}"),
            data,
            (page, caption),
            factor,
            trials,
        )?;
    }
    write!(out, "</div>")
}

fn panel(
    out: &mut String,
    id: &str,
    data: &Data,
    (page, caption): (&str, &str),
    factor: &Factor,
    trials: &[&Trial],
) -> fmt::Result {
    let place = Axis::of(factor);
    let points = |protocol: &str| -> Vec<(f64, &str, f64)> {
        let point = |trial: &&Trial| {
            let level = factor
                .levels
                .iter()
                .find(|(name, _)| Some(&name[..]) == trial.level(&factor.name))?;
            Some((level.1, &level.0[..], trial.cell(protocol)?.load_ms))
        };
        let mut points: Vec<_> = trials.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        points
    };
    let end = trials
        .iter()
        .flat_map(|trial| trial.cells.iter().map(|cell| cell.load_ms))
        .fold(0.0, f64::max)
        .max(f64::MIN_POSITIVE);
    let y = |ms: f64| BOTTOM - ms / end * (BOTTOM - TOP);
    write!(
        out,
        "<figure><figcaption>{caption}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">Load time of {page} over {factor}</title><desc id=\"{id}-d\">",
        caption = Text(if caption.is_empty() { page } else { caption }),
        page = Text(page),
        factor = Text(&factor.name),
    )?;
    for protocol in &data.protocols {
        write!(out, "{}:", Text(protocol))?;
        for (_, level, ms) in points(protocol) {
            write!(out, " {} {} ms,", Text(level), Millis(ms))?;
        }
        write!(out, " ")?;
    }
    write!(out, "</desc>")?;
    for mark in ticks(end) {
        write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text class=\"axis y\" x=\"{x}\" y=\"{y:.1}\">{label}</text>",
            y = y(mark),
            x = LEFT - 4.0,
            label = tick_label(mark, end),
        )?;
    }
    // Labels that would stand on one another are left out.
    let mut free = f64::NEG_INFINITY;
    for (level, number) in &factor.levels {
        let x = place.x(*number);
        let half = level.len() as f64 * 2.6 + 3.0;
        if x - half < free {
            continue;
        }
        free = x + half;
        write!(
            out,
            "<text class=\"axis\" x=\"{x:.1}\" y=\"{}\">{}</text>",
            BOTTOM + 14.0,
            Text(level)
        )?;
    }
    for protocol in &data.protocols {
        let points = points(protocol);
        write!(
            out,
            "<g class=\"{}\"><path class=\"line\" d=\"",
            class_of(protocol)
        )?;
        for (at, (number, _, ms)) in points.iter().enumerate() {
            let command = if at == 0 { 'M' } else { 'L' };
            write!(out, "{command}{:.1} {:.1}", place.x(*number), y(*ms))?;
        }
        write!(out, "\"/>")?;
        for (number, level, ms) in points {
            write!(
                out,
                "<circle class=\"dot\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.5\"><title>{}, {} {}: {} ms</title></circle>",
                place.x(number),
                y(ms),
                Text(protocol),
                Text(&factor.name),
                Text(level),
                Millis(ms)
            )?;
        }
        write!(out, "</g>")?;
    }
    write!(
        out,
        "<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text></svg></figure>",
        f64::midpoint(LEFT, RIGHT),
        HEIGHT - 7.0,
        Text(&factor.name)
    )
}

/// Where levels stand from left to right.
struct Axis {
    first: f64,
    last: f64,
    is_logarithmic: bool,
}

impl Axis {
    fn of(factor: &Factor) -> Self {
        let ends = (factor.levels.first(), factor.levels.last());
        let (first, last) = match ends {
            (Some(first), Some(last)) => (first.1, last.1),
            _ => (0.0, 1.0),
        };
        Self {
            first,
            last,
            is_logarithmic: first > 0.0 && last / first >= LOGARITHMIC,
        }
    }

    fn x(&self, number: f64) -> f64 {
        let part = if self.is_logarithmic {
            (number / self.first).ln() / (self.last / self.first).ln()
        } else {
            (number - self.first) / (self.last - self.first)
        };
        let (left, right) = (LEFT + 14.0, RIGHT - 18.0);
        left + part * (right - left)
    }
}
