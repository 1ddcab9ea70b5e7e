//! Tables of a calibration: figures, errors, and limits that were exceeded.

use spdy_lab::calibrate::compare::{CellResult, ErrorStats};

use crate::output::{BAD, Cell, GOOD, Printer, Table};

/// Errors with a name, those that there are.
pub(crate) fn error_table(sums: &[(&str, Option<ErrorStats>)]) -> Table {
    let head = SIZES.map(Cell::number);
    let mut table = Table::new([Cell::word("error of")].into_iter().chain(head));
    for (name, errors) in sums {
        if let Some(errors) = errors {
            table.row([Cell::word(name)].into_iter().chain(sizes(errors)));
        }
    }
    table
}

/// What is past its bar, or that nothing is.
pub(crate) fn print_exceeded_limits(
    exceeded_limits: &[String],
    printer: &Printer,
) -> anyhow::Result<()> {
    for past in exceeded_limits {
        printer.line(format_args!("{BAD}above the limit{BAD:#}: {past}"))?;
    }
    if exceeded_limits.is_empty() {
        printer.line(format_args!("{GOOD}within all limits{GOOD:#}"))?;
    }
    Ok(())
}

/// Headings of the columns with errors.
const SIZES: [&str; 6] = ["settings", "mean", "median", "9 of 10", "most", "bias"];

/// Those columns.
fn sizes(errors: &ErrorStats) -> [Cell; 6] {
    let ErrorStats {
        cells,
        mean,
        median,
        p90,
        max,
        bias,
    } = *errors;
    let of = |part: f64| Cell::number(percent(part));
    let bias = Cell::number(signed_percent(bias));
    [
        Cell::number(cells),
        of(mean),
        of(median),
        of(p90),
        of(max),
        bias,
    ]
}

/// A figure of milliseconds, or that there is none.
pub(crate) fn ms_cell(figure: Option<f64>) -> Cell {
    let text = figure.map_or("–".to_owned(), |figure| format!("{figure:.2}"));
    Cell::number(text)
}

/// The number of runs that count, and the requested number if some are missing.
pub(crate) fn runs_cell<S>(result: &CellResult<S>) -> Cell {
    let (count, requested) = (result.real_ms.len(), result.requested_runs);
    if result.incomplete_reason.is_none() {
        return Cell::number(count);
    }
    Cell::number(format_args!("{count} of {requested}")).styled(BAD)
}

/// An error, or that there is none.
pub(crate) fn error_cell(error: Option<f64>) -> Cell {
    Cell::number(error.map_or("–".to_owned(), signed_percent))
}

fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

fn signed_percent(part: f64) -> String {
    format!("{:+.2} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use spdy_lab::calibrate::download_cell::{self, DownloadCell};

    use super::*;

    #[test]
    fn a_cell_with_missing_runs_is_marked_in_its_row() {
        let mut result = CellResult {
            subject: download_cell::small()[0],
            virtual_ms: vec![100.0],
            real_ms: vec![100.0, 101.0],
            computed_ms: Vec::new(),
            requested_runs: 2,
            repeated: 0,
            incomplete_reason: None,
        };
        let render = |result: &CellResult<DownloadCell>| {
            let mut table = Table::new(["runs"].map(Cell::number));
            table.row([runs_cell(result)]);
            anstream::adapter::strip_str(&table.to_string()).to_string()
        };
        assert_eq!(render(&result).lines().last(), Some("   2"));
        result.requested_runs = 3;
        result.incomplete_reason = Some("a packet was late".to_owned());
        assert_eq!(render(&result).lines().last(), Some("2 of 3"));
    }
}
