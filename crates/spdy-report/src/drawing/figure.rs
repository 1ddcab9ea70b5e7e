//! A figure: panels that belong together, and their legend.
//!
//! ```text
//!              ┌─ on_page    <div> of <figure>s that fill the width of the screen
//! Figure ──────┤
//!              └─ on_paper   one SVG file: legend, panels in columns with their captions, white ground
//! ```

use std::fmt::{self, Write};

use super::panel::Panel;
use super::shape_style::{LegendAttributes, ProtocolStyle, ShapeStyle, TextStyle};
use crate::text::Text;

/// Most panels of one figure. Further panels are left out, and the figure states how many.
pub(crate) const MAX_PANELS: usize = 48;

/// Fonts on paper. The widest is the one that pixels are drawn with.
const FONTS: &str = "DejaVu Sans Condensed, Arial, Helvetica, sans-serif";
/// Around everything, and between panels.
const MARGIN: f64 = 12.0;
const GAP: f64 = 22.0;
const CAPTION: f64 = 20.0;
const LEGEND: f64 = 22.0;
/// Approximate width of a letter as a part of its size; a legend need not fit exactly.
const LETTER_WIDTH: f64 = 0.52;

/// Panels that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// Name of its file, without an ending: letters, digits and hyphens.
    pub(crate) stem: String,
    /// Its content, as a title that is understood alone.
    pub(crate) title: String,
    /// Panels beside each other on paper.
    pub(crate) columns: usize,
    /// The meaning of each colour.
    pub(crate) legend: Vec<(ShapeStyle, String)>,
    pub(crate) panels: Vec<Panel>,
    /// Panels that were left out.
    pub(crate) more: usize,
    /// CSS class of the pictures on the page.
    pub(crate) class: &'static str,
}

impl Figure {
    /// Creates a figure without panels; `words` form its file name.
    pub(crate) fn new(words: &[&str], title: impl Into<String>, columns: usize) -> Self {
        Self {
            stem: stem(words),
            title: title.into(),
            columns,
            legend: Vec::new(),
            panels: Vec::new(),
            more: 0,
            class: "",
        }
    }

    /// Makes these protocols the legend.
    pub(crate) fn legend_of<'a>(&mut self, protocols: impl IntoIterator<Item = &'a String>) {
        let item = |name: &String| (ShapeStyle::Mark(ProtocolStyle::of(name)), name.clone());
        self.legend = protocols.into_iter().map(item).collect();
    }

    /// Adds a panel, if there is room.
    pub(crate) fn push(&mut self, panel: Panel) {
        if self.panels.len() < MAX_PANELS {
            self.panels.push(panel);
        } else {
            self.more += 1;
        }
    }

    /// Lays four panels out as two by two.
    pub(crate) fn balance(&mut self) {
        if self.panels.len() == 4 {
            self.columns = 2;
        }
    }

    /// Writes the figure as part of a page; `id` is unique there.
    pub(crate) fn write_html(&self, out: &mut String, id: &str) -> fmt::Result {
        let columns = match self.columns {
            1 => " one",
            2 => " two",
            3 => " three",
            4 => " four",
            _ => "",
        };
        self.write_html_legend(out)?;
        write!(
            out,
            "<div class=\"panels{columns}\" data-figure=\"{}\">",
            self.stem
        )?;
        for (number, panel) in self.panels.iter().enumerate() {
            write!(
                out,
                "<figure><figcaption>{}</figcaption>",
                Text(&panel.caption)
            )?;
            panel.write_html(out, &format!("{id}-{number}"), self.class)?;
            write!(out, "</figure>")?;
        }
        write!(out, "</div>")?;
        if self.more > 0 {
            write!(out, "<p>{} more panels are left out.</p>", self.more)?;
        }
        Ok(())
    }

    fn write_html_legend(&self, out: &mut String) -> fmt::Result {
        write!(out, "<p class=\"legend\">")?;
        for (ink, name) in &self.legend {
            write!(
                out,
                "<span><i {}></i>{}</span>",
                LegendAttributes(*ink),
                Text(name)
            )?;
        }
        write!(out, "</p>")
    }

    /// Returns the figure as a file of its own.
    #[must_use]
    pub(crate) fn to_svg(&self) -> String {
        let mut out = String::new();
        self.write_svg(&mut out)
            .expect("a String takes every write");
        out
    }

    fn write_svg(&self, out: &mut String) -> fmt::Result {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let widest = self
            .panels
            .iter()
            .map(|panel| panel.width)
            .fold(0.0, f64::max);
        let row_heights: Vec<f64> = self
            .panels
            .chunks(columns)
            .map(|row| row.iter().map(|panel| panel.height).fold(0.0, f64::max))
            .collect();
        let legend = self.legend_rows(columns as f64 * (widest + GAP) - GAP);
        let head = MARGIN + LEGEND * legend.len() as f64;
        let width = 2.0 * MARGIN + columns as f64 * (widest + GAP) - GAP;
        let height = head
            + row_heights
                .iter()
                .map(|row| row + CAPTION + GAP)
                .sum::<f64>()
            - GAP
            + MARGIN;
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
        for (row, height) in self.panels.chunks(columns).zip(row_heights) {
            for (column, panel) in row.iter().enumerate() {
                let left = MARGIN + column as f64 * (widest + GAP);
                write!(
                    out,
                    "<text font-size=\"{}\" fill=\"{}\" x=\"{left}\" y=\"{}\">{}</text>\n<g transform=\"translate({left} {})\">",
                    TextStyle::Caption.size(),
                    TextStyle::Caption.color(),
                    top + 11.0,
                    Text(&panel.caption),
                    top + CAPTION
                )?;
                panel.write_svg(out)?;
                writeln!(out, "</g>")?;
            }
            top += height + CAPTION + GAP;
        }
        writeln!(out, "</svg>")
    }

    /// Items of the legend with their x positions, in rows no wider than `width`.
    fn legend_rows(&self, width: f64) -> Vec<Vec<(f64, usize)>> {
        let mut rows: Vec<Vec<(f64, usize)>> = Vec::new();
        let mut x = f64::INFINITY;
        for (number, (_, name)) in self.legend.iter().enumerate() {
            let wide = 34.0 + name.chars().count() as f64 * TextStyle::Value.size() * LETTER_WIDTH;
            if x + wide > width {
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
            match ink {
                ShapeStyle::Mark(tone) => {
                    row.path(ShapeStyle::Line(*tone), format!("M{left} {middle}h14"), "");
                    row.path(*ink, tone.mark(left + 7.0, middle, 3.2), "");
                }
                ShapeStyle::Midline => row.path(*ink, format!("M{left} {middle}h14"), ""),
                ShapeStyle::Dcl | ShapeStyle::Load => {
                    row.path(*ink, format!("M{} {}v10", left + 7.0, middle - 5.0), "");
                }
                _ => row.rect(*ink, [left, middle - 4.0, 14.0, 8.0], ""),
            }
            row.text(TextStyle::Value, left + 19.0, middle, name.clone());
        }
        row.write_svg(out)?;
        writeln!(out)
    }
}

/// Joins words to a file name.
fn stem(words: &[&str]) -> String {
    let joined = words.join("-");
    let keep = |char: char| {
        if char.is_ascii_alphanumeric() {
            char.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let mut stem = String::new();
    for char in joined.chars().map(keep).take(80) {
        if char != '-' || !(stem.is_empty() || stem.ends_with('-')) {
            stem.push(char);
        }
    }
    stem.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_name_is_safe_for_any_title() {
        assert_eq!(
            stem(&["load", "over", "rate", "../My Page.har"]),
            "load-over-rate-my-page-har"
        );
        assert_eq!(stem(&["é", "/"]), "");
    }

    #[test]
    fn more_panels_than_a_figure_takes_are_counted() {
        let mut figure = Figure::new(&["many"], "many", 3);
        for _ in 0..=MAX_PANELS {
            figure.push(Panel::new(10.0, 10.0));
        }
        assert_eq!((figure.panels.len(), figure.more), (MAX_PANELS, 1));
        let mut page = String::new();
        figure
            .write_html(&mut page, "id")
            .expect("a String takes every write");
        assert!(page.contains("1 more panels are left out"), "{page}");
    }
}
