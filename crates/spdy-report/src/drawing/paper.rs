//! A figure as an SVG file on white paper: legend, panels in columns with their captions, and the conditions of the measurement.
//!
//! A figure in a paper or on a slide is often far from its report, so the conditions are part of it.

use std::fmt::{self, Write};

use super::figure::Figure;
use super::letters::{width, wrap};
use super::panel::Panel;
use super::shape_style::{ShapeStyle, TextStyle};
use crate::text::{FullText, Text};

/// Maximum number of panels of one file. Further panels are left out, and the file states how many.
const MAX_PANELS: usize = 48;

/// Fonts on paper. The first is the one that pixels are drawn with.
const FONTS: &str = "DejaVu Sans Condensed, Arial, Helvetica, sans-serif";
/// Around everything, and between panels.
const MARGIN: f64 = 12.0;
const GAP: f64 = 22.0;
/// Between the last line of a caption and its panel.
const UNDER_CAPTION: f64 = 7.0;
const LEGEND: f64 = 22.0;
/// Height of a line as a part of the size of its letters.
const LINE: f64 = 1.2;
/// Minimum width between the margins: conditions of a small figure need not be a column of words.
const MIN_WIDTH: f64 = 320.0;
/// Around the sample and the name of an item in the legend.
const BESIDE_NAME: f64 = 34.0;

impl Figure {
    /// Returns the figure as a separate file, with `conditions` as its last lines.
    #[must_use]
    pub(crate) fn to_svg(&self, conditions: &str) -> String {
        let mut out = String::new();
        self.write_svg(&mut out, conditions)
            .expect("a String takes every write");
        out
    }

    fn write_svg(&self, out: &mut String, conditions: &str) -> fmt::Result {
        let panels = &self.panels[..self.panels.len().min(MAX_PANELS)];
        let left_out = self.panels.len() - panels.len() + self.more;
        let columns = self.columns.clamp(1, panels.len().max(1));
        let widest = panels.iter().map(|panel| panel.width).fold(0.0, f64::max);
        let inner = (columns as f64 * (widest + GAP) - GAP).max(MIN_WIDTH);
        let rows: Vec<PanelRow<'_>> = panels
            .chunks(columns)
            .map(|panels| PanelRow::of(panels, widest))
            .collect();
        let legend = self.legend_rows(inner);
        let notes = match left_out {
            0 => conditions.to_owned(),
            count => format!("{count} more panels are left out.\n{conditions}"),
        };
        let notes = TextBlock::of(TextStyle::Condition, &notes, inner);
        let head = MARGIN + LEGEND * legend.len() as f64;
        let below_panels = head + rows.iter().map(|row| row.height() + GAP).sum::<f64>() - GAP;
        let above_notes = if notes.lines.is_empty() {
            0.0
        } else {
            GAP / 2.0
        };
        let (width, height) = (
            2.0 * MARGIN + inner,
            below_panels + above_notes + notes.height() + MARGIN,
        );
        write!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" \
             font-family=\"{FONTS}\">\n<title>{}</title>\n<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n",
            Text(&self.title)
        )?;
        for (row, items) in legend.iter().enumerate() {
            self.write_legend_row(out, items, MARGIN + LEGEND * row as f64)?;
        }
        let mut top = head;
        for row in &rows {
            row.write(out, top, widest)?;
            top += row.height() + GAP;
        }
        notes.write(out, MARGIN, below_panels + above_notes)?;
        writeln!(out, "</svg>")
    }

    /// Items of the legend with their x positions, in rows no wider than `most`.
    fn legend_rows(&self, most: f64) -> Vec<Vec<(f64, usize)>> {
        let mut rows: Vec<Vec<(f64, usize)>> = Vec::new();
        let mut x = f64::INFINITY;
        for (number, (_, name)) in self.legend.iter().enumerate() {
            let wide = BESIDE_NAME + width(name, TextStyle::Value.size());
            if x + wide > most {
                rows.push(Vec::new());
                x = 0.0;
            }
            if let Some(row) = rows.last_mut() {
                row.push((x, number));
            }
            x += wide;
        }
        rows
    }

    fn write_legend_row(&self, out: &mut String, items: &[(f64, usize)], top: f64) -> fmt::Result {
        let mut row = Panel::new(0.0, 0.0);
        for (x, number) in items {
            let (ink, name) = &self.legend[*number];
            let (left, middle) = (MARGIN + x, top + 5.0);
            let sample = [left, middle - 4.0, 14.0, 8.0];
            match ink {
                ShapeStyle::Mark(tone) => {
                    row.path(ShapeStyle::Line(*tone), format!("M{left} {middle}h14"), "");
                    row.path(*ink, tone.mark(left + 7.0, middle, 3.2), "");
                }
                ShapeStyle::Midline => row.path(*ink, format!("M{left} {middle}h14"), ""),
                ShapeStyle::Fcp | ShapeStyle::Lcp | ShapeStyle::Dcl | ShapeStyle::Load => {
                    row.path(*ink, format!("M{} {}v10", left + 7.0, middle - 5.0), "");
                }
                ShapeStyle::Good(_) | ShapeStyle::Bad(_) => {
                    row.rect(*ink, sample, "");
                    row.rect(ShapeStyle::Grid, sample, "");
                }
                _ => row.rect(*ink, sample, ""),
            }
            row.text(TextStyle::Value, left + 19.0, middle, name.clone());
        }
        row.write_svg(out)?;
        writeln!(out)
    }
}

/// Panels beside each other, with their captions.
struct PanelRow<'a> {
    panels: Vec<(&'a Panel, TextBlock)>,
}

impl<'a> PanelRow<'a> {
    fn of(panels: &'a [Panel], widest: f64) -> Self {
        let caption = |panel: &Panel| TextBlock::of(TextStyle::Caption, &panel.caption, widest);
        Self {
            panels: panels.iter().map(|panel| (panel, caption(panel))).collect(),
        }
    }

    fn caption_height(&self) -> f64 {
        let heights = self.panels.iter().map(|(_, caption)| caption.height());
        heights.fold(0.0, f64::max) + UNDER_CAPTION
    }

    fn height(&self) -> f64 {
        let heights = self.panels.iter().map(|(panel, _)| panel.height);
        heights.fold(0.0, f64::max) + self.caption_height()
    }

    fn write(&self, out: &mut String, top: f64, widest: f64) -> fmt::Result {
        for (column, (panel, caption)) in self.panels.iter().enumerate() {
            let left = MARGIN + column as f64 * (widest + GAP);
            caption.write(out, left, top)?;
            let panel_top = top + self.caption_height();
            write!(out, "<g transform=\"translate({left} {panel_top})\">")?;
            panel.write_svg(out)?;
            writeln!(out, "</g>")?;
        }
        Ok(())
    }
}

/// A text of several lines.
struct TextBlock {
    style: TextStyle,
    lines: Vec<String>,
}

impl TextBlock {
    fn of(style: TextStyle, text: &str, most: f64) -> Self {
        Self {
            style,
            lines: text
                .lines()
                .flat_map(|line| wrap(line, style.size(), most))
                .collect(),
        }
    }

    fn line_height(&self) -> f64 {
        self.style.size() * LINE
    }

    fn height(&self) -> f64 {
        self.lines.len() as f64 * self.line_height()
    }

    fn write(&self, out: &mut String, left: f64, top: f64) -> fmt::Result {
        for (number, line) in self.lines.iter().enumerate() {
            writeln!(
                out,
                "<text font-size=\"{}\" fill=\"{}\" x=\"{left}\" y=\"{:.1}\">{}</text>",
                self.style.size(),
                self.style.color(),
                top + self.style.size() + self.line_height() * number as f64,
                FullText(line)
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_and_long_captions_are_wrapped_and_complete() {
        let mut figure = Figure::new(&["one"], "one", 2);
        let mut panel = Panel::new(100.0, 50.0);
        panel.caption = "portal, rtt 200ms, loss 1%, initial-window 10, connections 6".to_owned();
        figure.push(panel.clone());
        figure.push(panel);
        let conditions = "pages portal, lulic-bing; rate 512kbit, 10mbit; 30 runs per cell; seed 1; virtual time; model 7";
        let svg = figure.to_svg(conditions);
        let lines = svg.lines().filter_map(|line| line.strip_prefix("<text "));
        let lines: Vec<_> = lines
            .filter_map(|line| line.strip_suffix("</text>")?.split_once('>'))
            .map(|(_, text)| text)
            .collect();
        let joined = lines.join(" ");
        assert!(joined.ends_with(conditions), "{joined}");
        assert!(lines.len() > 6, "the captions are in one line: {lines:?}");
        assert!(!figure.to_svg("").contains("seed"));
    }

    #[test]
    fn a_file_states_how_many_panels_it_leaves_out() {
        let mut figure = Figure::new(&["many"], "many", 3);
        for _ in 0..MAX_PANELS + 2 {
            figure.push(Panel::new(10.0, 10.0));
        }
        let svg = figure.to_svg("seed 1");
        for line in [">2 more panels are left out.<", ">seed 1<"] {
            assert!(svg.contains(line), "{svg}");
        }
    }
}
