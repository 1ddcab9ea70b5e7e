//! A figure: panels that belong together, and their legend.
//!
//! ```text
//!              ┌─ write_html <div> of <figure>s that fill the width of the screen
//! Figure ──────┤
//!              └─ paper.rs   one SVG file: legend, panels in columns with their captions, white ground
//! ```

use std::fmt::{self, Write};

use super::panel::{ClassAttribute, Panel};
use super::shape_style::{LegendAttributes, ProtocolStyle, ShapeStyle};
use crate::text::Text;

/// Most panels of one figure. Further panels are left out, and the figure states how many.
pub(crate) const MAX_PANELS: usize = 192;

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
    /// CSS classes of the whole figure on the page, by which a filter hides it.
    pub(crate) class_on_page: String,
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
            class_on_page: String::new(),
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
            let class = ClassAttribute(&panel.class);
            let caption = Text(&panel.caption);
            write!(out, "<figure{class}><figcaption>{caption}</figcaption>")?;
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
