//! `spdy replica check`: finds what hinders a replay of the page.

use serde::Serialize;
use spdy_page::check::{self, Finding, Severity};
use spdy_page::open::ImportOptions;

use crate::args::open_replica;
use crate::outcome::Outcome;
use crate::output::{BAD, DIM, GOOD, Printer, WARN, escape};

/// Arguments of `spdy replica check`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A shipped page (such as flags, portal, mineki), a replica, a .har or a .warc file
    #[arg(value_name = "REPLICA")]
    replica: String,

    /// Print one JSON object a finding
    #[arg(long)]
    json: bool,
}

/// A finding.
#[derive(Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub(crate) struct FindingLine<'a> {
    /// `note`, `warning` or `error`.
    severity: &'static str,
    /// Number of the exchange, from 0; `null` if the finding is of the whole replica.
    exchange: Option<usize>,
    /// The finding, in words.
    what: &'a str,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let opened = open_replica(&args.replica, &ImportOptions::default())?;
    let findings = check::check(&opened.replica);
    for finding in &findings {
        let Finding {
            severity,
            exchange,
            what,
        } = finding;
        if args.json {
            printer.json(&FindingLine {
                severity: name(*severity),
                exchange: *exchange,
                what,
            })?;
        } else {
            let style = match severity {
                Severity::Error => BAD,
                Severity::Warning => WARN,
                Severity::Note => DIM,
            };
            let place = exchange.map_or_else(String::new, |number| format!("exchange {number}: "));
            let what = escape(what);
            printer.line(format_args!(
                "{style}{}{style:#}: {place}{what}",
                name(*severity)
            ))?;
        }
    }
    let bad = findings
        .iter()
        .any(|finding| finding.severity == Severity::Error);
    if !args.json {
        let exchanges = opened.replica.exchanges.len();
        let verdict = if bad {
            format!("{BAD}invalid{BAD:#}")
        } else {
            format!("{GOOD}valid{GOOD:#}")
        };
        printer.line(format_args!(
            "{verdict}: {exchanges} exchanges, {} findings",
            findings.len()
        ))?;
    }
    Ok(Outcome::done_if(!bad))
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}
