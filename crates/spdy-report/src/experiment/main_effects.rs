//! Main effects: how load times change with each factor alone, over all combinations of the other factors.
//!
//! A mean uses only combinations that have a cell of every protocol at every level: otherwise a missing cell would look like an effect.

use std::fmt::{self, Write};

use super::data::{MedianTime, ReportData, VariedFactor};
use super::lines::{MARK_OFFSET, PlotArea, frame, mark_offset};
use super::tables::geometric_mean;
use crate::drawing::figure::Figure;
use crate::drawing::shape_style::{ProtocolStyle, ShapeStyle};
use crate::tables::{close, open};
use crate::text::{Count, Millis, Text};
use crate::times::class_of;

/// The geometric means of a protocol's load times at each level of a factor.
struct MainEffect<'a> {
    factor: &'a VariedFactor,
    protocol: &'a str,
    /// One for each level, in milliseconds.
    means: Vec<f64>,
    combinations: usize,
}

impl MainEffect<'_> {
    /// Places of the levels with the smallest and the largest mean.
    fn ends(&self) -> (usize, usize) {
        let by_mean = |a: &usize, b: &usize| self.means[*a].total_cmp(&self.means[*b]);
        let least = (0..self.means.len()).min_by(by_mean).unwrap_or(0);
        let most = (0..self.means.len()).max_by(by_mean).unwrap_or(0);
        (least, most)
    }

    /// The largest mean over the smallest.
    fn size(&self) -> f64 {
        let (least, most) = self.ends();
        self.means[most] / self.means[least]
    }
}

/// The effects on `page`, by factor; a factor without a complete combination has none.
fn effects<'a>(data: &'a ReportData, page: &str) -> Vec<MainEffect<'a>> {
    data.factors
        .iter()
        .flat_map(|factor| of_factor(data, page, factor))
        .collect()
}

fn of_factor<'a>(
    data: &'a ReportData,
    page: &str,
    factor: &'a VariedFactor,
) -> Vec<MainEffect<'a>> {
    // For each complete combination, times by protocol and level.
    let combinations: Vec<Vec<Vec<f64>>> = data
        .panels(page, &[&factor.name])
        .iter()
        .filter_map(|(_, trials)| {
            let time = |protocol: &str, level: &str| {
                let at_level =
                    |trial: &&&super::data::Trial| trial.level(&factor.name) == Some(level);
                let cell = trials.iter().find(at_level)?.cell(protocol)?;
                Some(cell.load.ms).filter(|ms| *ms > 0.0)
            };
            let of_protocol = |protocol: &String| -> Option<Vec<f64>> {
                let levels = factor.levels.iter();
                levels.map(|(level, _)| time(protocol, level)).collect()
            };
            data.protocols.iter().map(of_protocol).collect()
        })
        .collect();
    if combinations.is_empty() {
        return Vec::new();
    }
    let effect = |(number, protocol): (usize, &'a String)| {
        let mean = |level: usize| {
            let times: Vec<f64> = combinations
                .iter()
                .map(|times| times[number][level])
                .collect();
            geometric_mean(&times).unwrap_or(f64::NAN)
        };
        MainEffect {
            factor,
            protocol,
            means: (0..factor.levels.len()).map(mean).collect(),
            combinations: combinations.len(),
        }
    };
    data.protocols.iter().enumerate().map(effect).collect()
}

/// A panel for each factor, with the same scale: a steeper line is a larger effect.
pub(super) fn figure(data: &ReportData, page: &str) -> Figure {
    let title = format!("Main effects on the load time of {page}");
    let mut figure = Figure::new(&["main-effects", page], title, 3);
    figure.legend_of(&data.protocols);
    let effects = effects(data, page);
    let means = effects.iter().flat_map(|effect| &effect.means);
    let end = means.copied().fold(f64::MIN_POSITIVE, f64::max);
    for effects in effects.chunk_by(|a, b| a.factor.name == b.factor.name) {
        let factor = effects[0].factor;
        let mut panel = frame(factor, "mean load time", end);
        panel.caption = format!("{page}: {}", factor.name);
        panel.title = format!("Main effect of {} on the load time of {page}", factor.name);
        for (number, effect) in effects.iter().enumerate() {
            let aside = match factor.is_numeric {
                true => 0.0,
                false => mark_offset(MARK_OFFSET, number, data),
            };
            let place = PlotArea::of(factor, end, aside);
            let points: Vec<_> = factor.levels.iter().zip(&effect.means).collect();
            if factor.is_numeric {
                let joined: Vec<_> = points
                    .iter()
                    .map(|((_, x), ms)| format!("{:.1} {:.1}", place.x(*x), place.y(**ms)))
                    .collect();
                let ink = ShapeStyle::Line(ProtocolStyle::of(effect.protocol));
                panel.path(ink, format!("M{}", joined.join("L")), "");
            }
            for ((level, x), ms) in points {
                let time = MedianTime {
                    ms: *ms,
                    interval: None,
                };
                let at = format!("{} {level}", factor.name);
                place.mark(&mut panel, effect.protocol, &at, *x, time);
            }
        }
        figure.push(panel);
    }
    figure.balance();
    figure
}

/// Writes the effects as numbers, those of each page and protocol from the largest to the smallest.
pub(super) fn table(out: &mut String, data: &ReportData) -> fmt::Result {
    let head = [
        "page",
        "protocol",
        "factor",
        "fastest at",
        "mean ms",
        "slowest at",
        "mean ms",
        "slowest / fastest",
        "combinations",
    ];
    open(out, "Main effects", &head)?;
    for page in &data.pages {
        let mut effects = effects(data, page);
        let place = |protocol: &str| data.protocols.iter().position(|it| it == protocol);
        effects.sort_by(|a, b| {
            let by_protocol = place(a.protocol).cmp(&place(b.protocol));
            by_protocol.then(b.size().total_cmp(&a.size()))
        });
        for (number, effect) in effects.iter().enumerate() {
            let (least, most) = effect.ends();
            let level = |place: usize| Text(&effect.factor.levels[place].0);
            write!(
                out,
                "<tr{}><th scope=\"row\">{}</th><td class=\"word {}\">{}</td><td class=\"word\">{}</td><td>{}</td><td>{}</td><td>{}</td>\
                 <td>{}</td><td>×{:.2}</td><td>{}</td></tr>",
                if number == 0 { " class=\"first\"" } else { "" },
                Text(if number == 0 { page } else { "" }),
                class_of(effect.protocol),
                Text(effect.protocol),
                Text(&effect.factor.name),
                level(least),
                Millis(effect.means[least]),
                level(most),
                Millis(effect.means[most]),
                effect.size(),
                Count(effect.combinations as u64),
            )?;
        }
    }
    close(out)
}
