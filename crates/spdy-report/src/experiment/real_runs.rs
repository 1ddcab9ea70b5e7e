//! Runs in real time: their links, and their validity.

use std::fmt::{self, Write};

use spdy_lab::experiment::cell::levels_of;

use super::data::ReportData;
use super::real_run_row::RealRunRow;
use crate::drawing::panel::ClassAttribute;
use crate::tables::{close, open};
use crate::text::{FullText, Millis, Text};
use crate::times::class_of;

/// Rows of the table.
const MAX_ROWS: usize = 200;

/// Writes every run, up to [`MAX_ROWS`]; invalid ones come first.
pub(super) fn runs(out: &mut String, data: &ReportData) -> fmt::Result {
    let mut runs: Vec<&RealRunRow> = data.real.iter().collect();
    runs.sort_by_key(|run| run.invalid.is_none());
    let invalid = runs.iter().filter(|run| run.invalid.is_some()).count();
    let repeated: u64 = runs.iter().map(|run| run.attempts.saturating_sub(1)).sum();
    write!(
        out,
        "<p>{} of {} runs are valid; {repeated} invalid attempts were repeated. Invalid runs are in no figure of this report.</p>",
        runs.len() - invalid,
        runs.len()
    )?;
    let head = [
        "cell",
        "protocol",
        "run",
        "load ms",
        "attempts",
        "rate",
        "delay ms",
        "lost",
        "late ms: mean",
        "1 in 100",
        "most",
        "waited ms",
        "valid",
    ];
    open(out, "Runs in real time", &head)?;
    for run in runs.iter().take(MAX_ROWS) {
        let rate = run.achieved_bps.map_or("–".to_owned(), |bps| {
            format!("{:+.2}\u{202f}%", (bps / run.configured_bps - 1.0) * 100.0)
        });
        let [mean, p99, most] = run.late_ms.map(format_ms);
        let counts = match (&run.invalid, &run.rejected) {
            (Some(reason), _) => format!("no: {reason}"),
            (None, Some(before)) => format!("yes; rejected attempts: {before}"),
            (None, None) => "yes".to_owned(),
        };
        write!(
            out,
            "<tr{}><th scope=\"row\">{}</th><td class=\"word {}\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{rate}</td><td>{}</td>\
             <td>{:.0}</td><td>{mean}</td><td>{p99}</td><td>{most}</td><td>{}</td><td class=\"word\">{}</td></tr>",
            ClassAttribute(&data.filter.classes_of_levels(&levels_of(&run.key))),
            FullText(&run.key),
            class_of(&run.protocol),
            Text(&run.protocol),
            run.run,
            Millis(run.load_ms),
            run.attempts,
            format_ms(run.delay_ms),
            run.lost,
            format_ms(run.cpu_wait_ms),
            Text(&counts),
        )?;
    }
    close(out)?;
    if let more @ 1.. = runs.len().saturating_sub(MAX_ROWS) {
        write!(
            out,
            "<p>And {more} more; <code>spdy lab export</code> has every run.</p>"
        )?;
    }
    Ok(())
}

/// Milliseconds to a hundredth.
fn format_ms(ms: Option<f64>) -> String {
    ms.map_or("–".to_owned(), |ms| format!("{ms:.2}"))
}
