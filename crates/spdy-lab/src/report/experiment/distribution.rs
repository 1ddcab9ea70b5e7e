//! How many of the trials are loaded by when: a panel for each page, a line for each protocol.

use std::fmt::{self, Write};

use super::data::Data;
use crate::report::text::{Millis, Text};
use crate::report::times::{class_of, tick_label};
use crate::stats::median;

const WIDTH: f64 = 360.0;
const LEFT: f64 = 34.0;
const RIGHT: f64 = 342.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 160.0;
const HEIGHT: f64 = 180.0;

/// A panel for each page.
pub(super) fn panels(out: &mut String, data: &Data) -> fmt::Result {
    write!(out, "<div class=\"panels\">")?;
    for (number, page) in data.pages.iter().enumerate() {
        panel(out, number, data, page)?;
    }
    write!(out, "</div>")
}

fn panel(out: &mut String, number: usize, data: &Data, page: &str) -> fmt::Result {
    let times = |protocol: &str| -> Vec<f64> {
        let trials = data.trials.iter().filter(|trial| trial.page == page);
        let mut times: Vec<f64> = trials
            .filter_map(|trial| trial.cell(protocol))
            .map(|cell| cell.load_ms)
            .filter(|ms| *ms > 0.0)
            .collect();
        times.sort_by(f64::total_cmp);
        times
    };
    let all: Vec<f64> = data.protocols.iter().flat_map(|it| times(it)).collect();
    let (least, most) = (
        all.iter().copied().fold(f64::INFINITY, f64::min),
        all.iter().copied().fold(0.0, f64::max),
    );
    if least >= most {
        return Ok(());
    }
    let x = |ms: f64| LEFT + (ms / least).ln() / (most / least).ln() * (RIGHT - LEFT);
    let y = |part: f64| BOTTOM - part * (BOTTOM - TOP);
    write!(
        out,
        "<figure><figcaption>{page}</figcaption>\
         <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"cdf-{number}-t cdf-{number}-d\">\
         <title id=\"cdf-{number}-t\">Load times of {page}, all trials</title><desc id=\"cdf-{number}-d\">",
        page = Text(page)
    )?;
    for protocol in &data.protocols {
        let middle = median(times(protocol)).unwrap_or_default();
        write!(out, "{}: half by {} ms. ", Text(protocol), Millis(middle))?;
    }
    write!(out, "</desc>")?;
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        write!(
            out,
            "<path class=\"grid\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/><text class=\"axis y\" x=\"{before}\" y=\"{y:.1}\">{percent}\u{202f}%</text>",
            y = y(part),
            before = LEFT - 4.0,
            percent = part * 100.0,
        )?;
    }
    let mut marks: Vec<f64> = (least.log10().floor() as i32..=most.log10().ceil() as i32)
        .flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power)))
        .filter(|ms| (least..=most).contains(ms))
        .collect();
    if marks.len() < 2 {
        marks = vec![least, most]; // no round numbers lie between
    }
    for ms in marks {
        write!(
            out,
            "<path class=\"grid\" d=\"M{x:.1} {TOP}V{BOTTOM}\"/><text class=\"axis\" x=\"{x:.1}\" y=\"{}\">{label}</text>",
            BOTTOM + 13.0,
            x = x(ms),
            label = tick_label(ms, most),
        )?;
    }
    for protocol in &data.protocols {
        let times = times(protocol);
        let count = times.len() as f64;
        write!(
            out,
            "<g class=\"{}\"><path class=\"line\" d=\"M{LEFT} {BOTTOM}",
            class_of(protocol)
        )?;
        for (at, ms) in times.iter().enumerate() {
            write!(out, "H{:.1}V{:.1}", x(*ms), y((at as f64 + 1.0) / count))?;
        }
        write!(
            out,
            "H{RIGHT}\"><title>{}</title></path></g>",
            Text(protocol)
        )?;
    }
    write!(out, "</svg></figure>")
}
