//! Ratios over two factors: green where the protocol is faster than the first, red where it is slower.

use std::fmt::{self, Write};

use super::data::{Data, Factor, Trial};
use crate::report::text::Text;

const LEFT: f64 = 72.0;
const COLUMN: f64 = 42.0;
const ROW: f64 = 22.0;
const AXIS: f64 = 30.0;

/// Ratio from which on the colour is as strong as it gets, and its inverse.
const STRONGEST: f64 = 2.0;
/// How strong that is: figures stand on it.
const OPACITY: f64 = 0.7;

/// Panels of `page`, for each protocol but the first, over `across` and `down`.
pub(super) fn panels(
    out: &mut String,
    id: &str,
    data: &Data,
    page: &str,
    (across, down): (&Factor, &Factor),
) -> fmt::Result {
    write!(out, "<div class=\"panels\">")?;
    let mut number = 0;
    for (caption, trials) in data.panels(page, &[&across.name, &down.name]) {
        for protocol in &data.protocols[1..] {
            let caption = match &caption[..] {
                "" => format!("{protocol} to {}", data.reference()),
                caption => format!("{protocol} to {}, {caption}", data.reference()),
            };
            panel(
                out,
                &format!("{id}-{number}"),
                data,
                (&caption, protocol),
                (across, down),
                &trials,
            )?;
            number += 1;
        }
    }
    write!(out, "</div>")
}

fn panel(
    out: &mut String,
    id: &str,
    data: &Data,
    (caption, protocol): (&str, &str),
    (across, down): (&Factor, &Factor),
    trials: &[&Trial],
) -> fmt::Result {
    let width = LEFT + COLUMN * across.levels.len() as f64 + 2.0;
    let bottom = ROW * down.levels.len() as f64;
    write!(
        out,
        "<figure><figcaption>{caption}</figcaption>\
         <svg class=\"heat\" viewBox=\"0 0 {width} {height}\" style=\"max-width:{wide}px\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">Ratio of load times, {caption}</title>\
         <desc id=\"{id}-d\">{down} from top to bottom, {across} from left to right; below 1 is faster.</desc>",
        caption = Text(caption),
        height = bottom + AXIS,
        wide = width * 1.3,
        down = Text(&down.name),
        across = Text(&across.name),
    )?;
    for (row, (level_down, _)) in down.levels.iter().enumerate() {
        let middle = ROW * (row as f64 + 0.5);
        write!(
            out,
            "<text class=\"axis y\" x=\"{}\" y=\"{middle}\">{}</text>",
            LEFT - 5.0,
            Text(level_down)
        )?;
        for (column, (level_across, _)) in across.levels.iter().enumerate() {
            let is_here = |trial: &&&Trial| {
                trial.level(&down.name) == Some(level_down)
                    && trial.level(&across.name) == Some(level_across)
            };
            let ratio = trials.iter().find(is_here);
            let Some(ratio) = ratio.and_then(|trial| trial.ratio(protocol, data.reference()))
            else {
                continue;
            };
            let strength = OPACITY * (ratio.ln().abs() / STRONGEST.ln()).min(1.0);
            let tone = if ratio < 1.0 { "good" } else { "bad" };
            let x = LEFT + COLUMN * column as f64;
            write!(
                out,
                "<g><title>{} {}, {} {}: ×{ratio:.3}</title>\
                 <rect class=\"{tone}\" x=\"{x}\" y=\"{y}\" width=\"{w}\" height=\"{h}\" opacity=\"{strength:.2}\"/>\
                 <text class=\"cell\" x=\"{cx}\" y=\"{middle}\">{ratio:.2}</text></g>",
                Text(&down.name),
                Text(level_down),
                Text(&across.name),
                Text(level_across),
                y = ROW * row as f64,
                w = COLUMN - 1.0,
                h = ROW - 1.0,
                cx = x + COLUMN / 2.0,
            )?;
        }
    }
    for (column, (level, _)) in across.levels.iter().enumerate() {
        write!(
            out,
            "<text class=\"axis\" x=\"{}\" y=\"{}\">{}</text>",
            LEFT + COLUMN * (column as f64 + 0.5),
            bottom + 12.0,
            Text(level)
        )?;
    }
    write!(
        out,
        "<text class=\"axis\" x=\"{across_x}\" y=\"{names}\">{across}</text>\
         <text class=\"axis y\" x=\"{down_x}\" y=\"{names}\">{down}</text></svg></figure>",
        across_x = f64::midpoint(LEFT, width),
        down_x = LEFT - 5.0,
        names = bottom + AXIS - 6.0,
        across = Text(&across.name),
        down = Text(&down.name),
    )
}
