//! `spdy doctor`: what would make a page load faster, found by trying it in virtual time.

use std::ops::ControlFlow;

use spdy_lab::doctor::examination::{Case, Examination};
use spdy_lab::options::RaceProtocol;
use spdy_lab::stats::LEAST_RUNS;
use spdy_page::open::ImportOptions;

use crate::commands::load_choices::Choices;
use crate::commands::race::{networks, open_replica};
use crate::commands::{Outcome, doctor_table};
use crate::help::examples;
use crate::printer::{Printer, WARN};

/// What `spdy doctor` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The page: a shipped name (flags, portal), a replica, a .har or a .warc file
    #[arg(value_name = "REPLICA")]
    replica: String,

    /// A named network, or one spelled out as "down=2mbit,up=384kbit,rtt=100ms,loss=0"; may be repeated
    #[arg(
        short,
        long = "network",
        value_name = "NAME|SPEC",
        default_value = "dsl"
    )]
    networks: Vec<String>,

    /// How the page is loaded today: http, https, spdy, h2 or h3
    #[arg(short, long, value_name = "NAME", default_value = "spdy")]
    protocol: RaceProtocol,

    /// Loads with each change; more than one tells more only where there is chance (loss, jitter)
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,

    /// Seed of the first run; the second has the next number
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Changes that are shown of those that save something
    #[arg(short, long, value_name = "N", default_value_t = 12)]
    most: usize,

    /// Print everything that was tried, as one JSON object a network
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    choices: Choices,
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
    let mut outcome = Outcome::Done;
    for (number, network) in networks(&args.networks)?.into_iter().enumerate() {
        let case = Case {
            replica: opened.replica.clone(),
            network,
            protocol: args.protocol,
            options: args.choices.options()?,
            runs: args.runs,
            seed: args.seed,
        };
        if case.network.profile.path.has_chance() && (args.runs as usize) < LEAST_RUNS {
            let (name, runs) = (&case.network.name, args.runs);
            let them = if runs == 1 { "run" } else { "runs" };
            printer.note(format_args!(
                "{WARN}chance{WARN:#}: {name} loses or delays packets by chance, and {runs} {them} of each change may save by chance alone; \
                 --runs 9 tells more"
            ));
        }
        let examination = examine(&case, args, printer);
        if args.json {
            printer.json(&examination)?;
        } else {
            if number > 0 {
                printer.line("")?;
            }
            printer.line(doctor_table::render(&examination, args.most))?;
        }
        if let [first, others @ ..] = examination.failures.as_slice() {
            let more = others.len();
            printer.note(format_args!(
                "{WARN}not whole{WARN:#} over {}: {first} (and {more} more); the times are of what came",
                examination.network
            ));
            outcome = Outcome::Failed;
        }
    }
    Ok(outcome)
}

fn examine(case: &Case, args: &Args, printer: &Printer) -> Examination {
    let mut bar = None;
    let examination = case.examine(args.choices.threads(), |_, total| {
        let bar = bar.get_or_insert_with(|| printer.progress(total as u64, "trying"));
        bar.inc(1);
        ControlFlow::Continue(())
    });
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    examination.expect("nobody broke it off")
}
