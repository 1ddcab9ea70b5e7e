//! What `spdy accelerate --origin` prints about the pages that it has not seen before: how many URLs of other hosts it proxies, how many
//! it leaves, and why.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use spdy_proxy::telemetry::page_report::Report;
use spdy_proxy::telemetry::page_reports::PageObserver;

use crate::output::{BOLD, Printer, WARN, escape, format_count};

/// Pages that are printed. A crawler would otherwise fill the terminal.
const MAX_PAGES: usize = 30;

/// Prints a line for each new page that references other hosts.
pub(super) fn observer(printer: &Printer) -> PageObserver {
    let printer = printer.clone();
    let seen: Mutex<BTreeSet<String>> = Mutex::default();
    Arc::new(move |report: &Report| {
        let left = report.counts.unchanged_count();
        let is_silent = report.counts.skip_reason.is_none() && report.counts.proxied + left == 0;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if is_silent || seen.len() > MAX_PAGES || !seen.insert(report.url.clone()) {
            return;
        }
        if seen.len() > MAX_PAGES {
            printer.note(format_args!(
                "{MAX_PAGES} pages are listed; `[admin]` of a configuration has the reports of all"
            ));
        } else {
            printer.note(PageNote(report));
        }
    })
}

/// The report of a page in one line.
struct PageNote<'a>(&'a Report);

impl fmt::Display for PageNote<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(report) = self;
        let private = if report.is_public {
            ""
        } else {
            "a private page of "
        };
        write!(f, "{private}{BOLD}{}{BOLD:#}: ", escape(&report.url))?;
        if let Some(reason) = report.counts.skip_reason {
            return write!(f, "{WARN}not rewritten{WARN:#}: {reason}");
        }
        let proxied = format_count(report.counts.proxied as u64, "URL");
        write!(f, "{proxied} of other hosts proxied")?;
        let left = report.counts.unchanged_count();
        if left > 0 {
            write!(f, ", {left} not")?;
        }
        let reasons = &report.counts.skipped_by_reason;
        for (number, (reason, count)) in reasons.iter().enumerate() {
            let before = if number == 0 { ": " } else { ", " };
            write!(f, "{before}{count} {reason}")?;
        }
        Ok(())
    }
}
