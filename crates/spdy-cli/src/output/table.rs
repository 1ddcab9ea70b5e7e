//! Tables and bars of text for a terminal.

use std::fmt::{self, Display};

use anstyle::Style;

use super::printer::DIM;
use super::text::escape;

/// Spaces between two columns.
const GAP: usize = 2;

/// A cell: text and its style. Control characters in external text are escaped.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cell {
    text: String,
    style: Style,
    right: bool,
}

impl Cell {
    /// A left-aligned text.
    pub(crate) fn word(text: impl Display) -> Self {
        Self {
            text: escape(&text.to_string()).into_owned(),
            style: Style::new(),
            right: false,
        }
    }

    /// A right-aligned number.
    pub(crate) fn number(text: impl Display) -> Self {
        Self {
            right: true,
            ..Self::word(text)
        }
    }

    /// The same cell with `style`.
    pub(crate) fn styled(self, style: Style) -> Self {
        Self { style, ..self }
    }

    fn width(&self) -> usize {
        console::measure_text_width(&self.text)
    }
}

/// A table as text with ANSI codes; the printer removes them if colours are not used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Vec<Cell>>,
}

impl Table {
    /// A table that starts with these headings.
    pub(crate) fn new(head: impl IntoIterator<Item = Cell>) -> Self {
        Self {
            rows: vec![head.into_iter().map(|cell| cell.styled(DIM)).collect()],
        }
    }

    /// Adds a row below.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width_of = |column| {
            self.rows
                .iter()
                .filter_map(|row: &Vec<Cell>| row.get(column))
                .map(Cell::width)
                .max()
        };
        let widths: Vec<_> = (0..columns)
            .map(|column| width_of(column).unwrap_or(0))
            .collect();
        for (number, row) in self.rows.iter().enumerate() {
            if number > 0 {
                writeln!(f)?;
            }
            let last = row
                .iter()
                .rposition(|cell| !cell.text.is_empty())
                .map_or(0, |last| last + 1);
            for (column, cell) in row.iter().enumerate().take(last) {
                if column > 0 {
                    write!(f, "{:GAP$}", "")?;
                }
                let pad = widths[column] - cell.width();
                let (before, after) = if cell.right { (pad, 0) } else { (0, pad) };
                let after = if column + 1 == last { 0 } else { after };
                let Cell { text, style, .. } = cell;
                write!(f, "{:before$}{style}{text}{style:#}{:after$}", "", "")?;
            }
        }
        Ok(())
    }
}

/// A bar of `part` of `width` columns, in eighths of a column; a part above 0 is always visible.
pub(crate) fn bar(part: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let part = if part.is_finite() {
        part.clamp(0.0, 1.0)
    } else {
        0.0
    };
    let eighths = (part * width as f64 * 8.0).round() as usize;
    let eighths = if part > 0.0 { eighths.max(1) } else { 0 };
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_right_aligned_words_left_and_no_line_ends_in_spaces() {
        let mut table = Table::new([Cell::word("page"), Cell::number("ms"), Cell::word("")]);
        table.row([Cell::word("flags"), Cell::number(7), Cell::word("█")]);
        table.row([Cell::word("日本"), Cell::number(1234), Cell::word("")]);
        let plain = anstream::adapter::strip_str(&table.to_string()).to_string();
        assert_eq!(plain, "page     ms\nflags     7  █\n日本   1234");
    }

    #[test]
    fn control_characters_of_foreign_text_are_escaped() {
        assert_eq!(Cell::word("a\u{1b}[2Jb\n").text, r"a\u{1b}[2Jb\n");
    }

    #[test]
    fn a_bar_shows_eighths_and_never_nothing_for_something() {
        assert_eq!(bar(1.0, 4), "████");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(1e-9, 10), "▏");
        assert_eq!([bar(0.0, 10), bar(f64::NAN, 10)], ["", ""]);
        assert_eq!(bar(7.0, 2), "██");
    }
}
