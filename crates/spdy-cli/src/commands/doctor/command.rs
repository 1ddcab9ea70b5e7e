//! `spdy doctor`: what would make a page load faster, found by trying it in virtual time.

use std::ops::ControlFlow;

use spdy_lab::doctor::examination::{Examination, ExaminationCase};
use spdy_page::open::ImportOptions;

use super::savings_table;
use crate::args::{ConditionArgs, PageLoadArgs, open_replica};
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{Printer, WARN};

/// Arguments of `spdy doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The page: a shipped page (such as flags, portal, mineki), a replica, a .har or a .warc file
    #[arg(value_name = "REPLICA")]
    replica: String,

    #[command(flatten)]
    conditions: ConditionArgs,

    /// Show at most this many of the changes that save time
    #[arg(short, long, value_name = "N", default_value_t = 12)]
    most: usize,

    /// Print everything that was tested, as one JSON object a network
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    choices: PageLoadArgs,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy doctor portal"
    "spdy doctor page.har --network 3g --protocol h2"
    "spdy doctor portal --network \"down=2mbit,up=384kbit,rtt=100ms,loss=0.01\" --runs 9 --json"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let opened = open_replica(&args.replica, &ImportOptions::default())?;
    if !opened.notes.skipped.is_empty() {
        let (name, notes) = (&args.replica, &opened.notes);
        printer.note(format_args!("{WARN}{name}{WARN:#}: {notes}"));
    }
    let networks = args.conditions.networks(printer)?;
    let mut outcome = Outcome::Done;
    for (number, network) in networks.into_iter().enumerate() {
        let case = ExaminationCase {
            replica: opened.replica.clone(),
            network,
            protocol: args.conditions.protocol,
            options: args.choices.options()?,
            runs: args.conditions.runs(),
            seed: args.conditions.seed,
        };
        let examination = examine(&case, args, printer);
        if args.json {
            printer.json(&examination)?;
        } else {
            if number > 0 {
                printer.line("")?;
            }
            printer.line(savings_table::render(&examination, args.most))?;
        }
        if let [first, others @ ..] = examination.failures.as_slice() {
            let more = others.len();
            printer.note(format_args!(
                "{WARN}incomplete{WARN:#} over {}: {first} (and {more} more); the times are of the resources that arrived",
                examination.network
            ));
            outcome = Outcome::Failed;
        }
    }
    Ok(outcome)
}

fn examine(case: &ExaminationCase, args: &Args, printer: &Printer) -> Examination {
    let mut bar = None;
    let examination = case.examine(args.choices.threads(), |_, total| {
        let bar = bar.get_or_insert_with(|| printer.progress(total as u64, "trying"));
        bar.inc(1);
        ControlFlow::Continue(())
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    examination.expect("an examination without a stop flag runs to its end")
}
