//! `spdy lab reproduce`: runs the experiments of papers on SPDY again.

use std::fs;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use anyhow::Context;
use spdy_lab::claims::{self, Claim, ClaimResult, ClaimRunner, Corpus, LoadMemo, Paper, Verdict};
use spdy_lab::experiment::clock::Clock;
use spdy_sim::model::MODEL_VERSION;

use crate::args::parse::at_least_one;
use crate::help::examples;
use crate::outcome::Outcome;
use crate::output::{BAD, BOLD, DIM, GOOD, Printer, WARN};

/// Arguments of `spdy lab reproduce`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Paper to test: belshe, whitepaper, lulic, unm, mineki, nsdi14, cacm12, or all
    #[arg(value_name = "PAPER", default_value = "all", value_parser = papers)]
    papers: Papers,

    /// Folder of recordings (.har, .warc, also .gz) for claims about the web.
    ///
    /// Only recordings from before 2014 are used, because the claims are about the web of their time.
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,

    /// Loads of a page where results are random
    #[arg(short, long, value_name = "N", default_value_t = ClaimRunner::RUNS, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,

    /// Threads that load pages; the results do not depend on it [default: one a core]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<NonZeroUsize>,

    /// Quick test: use every eighth page of the corpus, and do not search for reasons of a failure
    #[arg(long)]
    quick: bool,

    /// Print one JSON object a claim
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print tables in Markdown
    #[arg(long)]
    markdown: bool,

    /// Write the claims with their verdicts to this HTML file, which needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab reproduce lulic"
    "spdy lab reproduce all --corpus recordings/ --markdown"
    "spdy lab reproduce nsdi14 --quick --json"
    "spdy lab reproduce mineki --report mineki.html"
};

/// The requested papers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Papers {
    All,
    One(Paper),
}

fn papers(name: &str) -> Result<Papers, String> {
    if name == "all" {
        return Ok(Papers::All);
    }
    let found = Paper::ALL.into_iter().find(|paper| paper.name() == name);
    found.map(Papers::One).ok_or_else(|| {
        let names = Paper::ALL.map(Paper::name).join(", ");
        format!("expected one of {names}, or all")
    })
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let corpus = args.corpus.as_ref();
    let corpus = corpus.map(|folder| Corpus::read(folder, args.jobs));
    let corpus = corpus.transpose()?;
    let is_requested = |claim: &&Claim| match args.papers {
        Papers::All => true,
        Papers::One(paper) => claim.paper == paper,
    };
    let claims: Vec<_> = claims::all().filter(is_requested).collect();
    let bar = printer.progress(claims.len() as u64, "claims");
    let bench = ClaimRunner {
        runs: args.runs,
        threads: args.jobs,
        corpus: corpus.as_ref(),
        quick: args.quick,
        on_loads: &|_| bar.tick(),
        memo: LoadMemo::default(),
    };
    let mut findings = Vec::with_capacity(claims.len());
    let mut last = None;
    for claim in claims {
        let finding = ClaimResult::of(claim, &bench);
        bar.inc(1);
        if args.json {
            printer.json(&finding)?;
        } else if !args.markdown {
            if last.replace(finding.paper) != Some(finding.paper) {
                printer.line(format_args!("{BOLD}{}{BOLD:#}", finding.paper.name()))?;
            }
            print(&finding, printer)?;
        }
        findings.push(finding);
    }
    bar.finish_and_clear();
    if args.markdown {
        printer.bytes(claims::markdown(&findings).as_bytes())?;
    } else if !args.json {
        printer.line(sum(&findings))?;
    }
    if let Some(path) = &args.report {
        let html = spdy_report::claims(&findings, &notes(args));
        fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))?;
        printer.note(format_args!("report: {}", path.display()));
    }
    Ok(Outcome::Done)
}

/// The conditions of the loads, for the head of the report.
fn notes(args: &Args) -> Vec<(String, String)> {
    let corpus = match &args.corpus {
        Some(folder) => folder.display().to_string(),
        None => "none".to_owned(),
    };
    let seeds = format!("1 to {}, derived for each page", args.runs);
    let quick = match args.quick {
        true => "yes: every eighth page of the corpus, and no explanations",
        false => "no",
    };
    [
        ("corpus", corpus),
        ("quick", quick.to_owned()),
        ("runs", args.runs.to_string()),
        ("seeds", seeds),
        ("clock", Clock::Virtual.to_string()),
        ("model", MODEL_VERSION.to_string()),
        ("program", format!("spdy {}", env!("CARGO_PKG_VERSION"))),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Prints one claim in a few lines.
fn print(finding: &ClaimResult, printer: &Printer) -> anyhow::Result<()> {
    let (unit, verdict) = (finding.unit, finding.verdict.label());
    let style = match finding.verdict {
        Verdict::Reproduced => GOOD,
        Verdict::DirectionOnly | Verdict::Undecided => WARN,
        Verdict::Contradicted => BAD,
        Verdict::Fitted | Verdict::StandIn | Verdict::CannotBeRun => DIM,
    };
    printer.line(format_args!(
        "  {style}{verdict}{style:#}  {BOLD}{}{BOLD:#}: {}",
        finding.name, finding.what
    ))?;
    printer.line(format_args!(
        "    {DIM}claimed   {DIM:#} {}",
        finding.claimed
    ))?;
    printer.line(format_args!(
        "    {DIM}conditions{DIM:#} {}",
        finding.conditions
    ))?;
    if let Some(measured) = &finding.measured {
        printer.line(format_args!(
            "    {DIM}measured  {DIM:#} {} ({})",
            measured.describe(unit),
            measured.intervals(unit)
        ))?;
        if measured.left_out > 0 {
            printer.line(format_args!(
                "    {WARN}excluded{WARN:#}   {} pairs of {} loads were incomplete",
                measured.left_out, measured.loads
            ))?;
        }
    }
    if let Some(reason) = &finding.reason {
        printer.line(format_args!("    {DIM}reason    {DIM:#} {reason}"))?;
    }
    for shift in &finding.shifts {
        printer.line(format_args!(
            "    {DIM}with      {DIM:#} {}: {}",
            shift.factor,
            shift.measured.describe(unit)
        ))?;
    }
    Ok(())
}

/// How many came to what.
fn sum(findings: &[ClaimResult]) -> String {
    let counts = Verdict::ALL.map(|verdict| {
        let of = findings.iter().filter(|it| it.verdict == verdict);
        format!("{} {}", of.count(), verdict.label())
    });
    format!(
        "{BOLD}{} claims{BOLD:#}: {}",
        findings.len(),
        counts.join(", ")
    )
}
