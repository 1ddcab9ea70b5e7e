//! `spdy lab calibrate`: virtual time against the kernel's own TCP.

use std::fmt;
use std::fs;
use std::num::NonZeroUsize;
use std::time::Duration;

use serde::Serialize;
use spdy_lab::calibrate::compare::{CellResult, DownloadSummary, ErrorStats, SixVsOne};
use spdy_lab::calibrate::download_cell::{self, DownloadCell};
use spdy_lab::calibrate::runner::{CalibrationRunner, Event};
use spdy_lab::calibrate::workload::Workload;
use spdy_lab::options::RaceProtocol;
use spdy_tun::namespaces::{self, CtrlCPolicy, ProcessRole};

use crate::commands::Outcome;
use crate::commands::count::at_least_one;
use crate::commands::lab::calibrate_link::{self, Link};
use crate::commands::lab::calibrate_pages;
use crate::help::examples;
use crate::printer::{BAD, DIM, GOOD, Printer};
use crate::table;
use crate::table::Table;

/// What `spdy lab calibrate` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which settings are compared
    #[arg(long, value_name = "SET", default_value = "small")]
    cells: Cells,

    /// Measure the link alone instead, by UDP at its ends: its rates and round trips
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all", conflicts_with_all = ["cells", "runs", "lossy_runs", "seed", "lanes"])]
    link: Option<Link>,

    /// Compare whole page loads instead, of these replicas; without any, of flags and portal
    #[arg(long, num_args = 0.., value_name = "REPLICA", conflicts_with_all = ["cells", "link"])]
    pub(super) pages: Option<Vec<String>>,

    /// A network of page loads, named or spelled out; may be repeated [default: cable, dsl, 3g, lte, satellite]
    #[arg(short, long = "network", value_name = "NAME|SPEC", requires = "pages")]
    pub(super) networks: Vec<String>,

    /// Protocols of page loads
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "http,https,spdy,h2",
        requires = "pages"
    )]
    pub(super) protocols: Vec<RaceProtocol>,

    /// Runs of each setting without loss and jitter that must count; their median is compared
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,

    /// Runs of each setting with loss or jitter that must count; their mean is compared, over the same seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    lossy_runs: u32,

    /// Seed of the first run; the second has the next number
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Links at a time; more make each other late
    #[arg(long, value_name = "N", default_value = "4", value_parser = at_least_one)]
    lanes: NonZeroUsize,

    /// Print one JSON object instead of the tables
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Cells {
    /// Twelve, some seconds
    Small,
    /// 150 single downloads without loss: 250 kbps to 10 Mbps, 10 to 500 ms, 1 kB to 1 MB
    LossFree,
    /// 72 single downloads with 1 and 2 % loss: 1 to 10 Mbps, 20 to 200 ms, 10 kB to 1 MB
    Lossy,
    /// 16 pairs of six connections and one, half of them with loss
    Pairs,
    /// The last three
    All,
}

impl Cells {
    fn cells(self) -> Vec<DownloadCell> {
        match self {
            Self::Small => download_cell::small(),
            Self::LossFree => download_cell::loss_free(),
            Self::Lossy => download_cell::lossy(),
            Self::Pairs => download_cell::pairs(),
            Self::All => [
                download_cell::loss_free(),
                download_cell::lossy(),
                download_cell::pairs(),
            ]
            .concat(),
        }
    }
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab calibrate"
    "spdy lab calibrate --cells all --json > calibration.json"
    "spdy lab calibrate --link"
    "spdy lab calibrate --pages --runs 5"
    "spdy lab calibrate --pages portal page.warc --network 3g,fibre --protocols https,h2"
    "spdy lab calibrate --cells lossy --lossy-runs 30 --lanes 8"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    match namespaces::enter(CtrlCPolicy::EndAll)? {
        ProcessRole::Outer(status) => Ok(Outcome::Code(namespaces::exit_code(status))),
        ProcessRole::Command(_) => anyhow::bail!("no command is run here"),
        ProcessRole::Inner(_) if args.pages.is_some() => calibrate_pages::run(args, printer),
        ProcessRole::Inner(_) => match args.link {
            Some(link) => calibrate_link::run(link, args.json, printer),
            None => calibrate(args, printer),
        },
    }
}

fn calibrate(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let load_before = load_average();
    let results = args.compare(&args.cells.cells(), printer)?;
    let calibration = Calibration {
        conditions: Environment::since(load_before, args),
        summary: DownloadSummary::of(&results),
        cells: results,
    };
    if args.json {
        printer.json(&calibration)?;
    } else {
        calibration.print(printer)?;
    }
    Ok(if calibration.summary.past_bars.is_empty() {
        Outcome::Done
    } else {
        Outcome::Failed
    })
}

impl Args {
    fn runner(&self) -> CalibrationRunner {
        CalibrationRunner {
            runs: self.runs,
            lossy_runs: self.lossy_runs,
            seed: self.seed,
            links: self.lanes.get(),
        }
    }

    /// What `subjects` take in both clocks, with progress.
    pub(super) fn compare<S: Workload>(
        &self,
        subjects: &[S],
        printer: &Printer,
    ) -> anyhow::Result<Vec<CellResult<S>>> {
        let work = self.runner();
        let bar = printer.progress(0, "calibrating");
        let begin = |all: Duration| bar.set_length(milliseconds(all));
        let on_event = |event: &Event<S>| {
            if let Event::Ran(expected) = event {
                bar.inc(milliseconds(*expected));
            }
        };
        let results = work.run(subjects, begin, on_event);
        bar.finish_and_clear();
        Ok(results?)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Processes that were ready to run, on average of the last minute.
pub(super) fn load_average() -> Option<f64> {
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}

fn kernel() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// What it was measured on.
#[derive(Debug, Serialize)]
pub(super) struct Environment {
    kernel: String,
    cores: usize,
    lanes: usize,
    seed: u64,
    load_before: Option<f64>,
    load_after: Option<f64>,
}

impl Environment {
    /// Of a calibration that ends now.
    pub(super) fn since(load_before: Option<f64>, args: &Args) -> Self {
        Self {
            kernel: kernel(),
            cores: std::thread::available_parallelism().map_or(0, NonZeroUsize::get),
            lanes: args.lanes.get(),
            seed: args.seed,
            load_before,
            load_after: load_average(),
        }
    }
}

impl fmt::Display for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let load = |load: &Option<f64>| load.map_or("?".to_owned(), |load| format!("{load:.1}"));
        let (kernel, cores, lanes) = (&self.kernel, self.cores, self.lanes);
        let (before, after) = (load(&self.load_before), load(&self.load_after));
        write!(
            f,
            "Linux {kernel}, {cores} cores, {lanes} lanes, load {before} to {after}"
        )
    }
}

#[derive(Debug, Serialize)]
struct Calibration {
    conditions: Environment,
    summary: DownloadSummary,
    cells: Vec<CellResult<DownloadCell>>,
}

impl Calibration {
    fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let words = ["kbps", "ms", "loss %", "manner", "objects", "bytes"];
        let figures = ["virtual ms", "real ms", "error", "runs", "repeated"];
        let mut table = Table::new(words.into_iter().chain(figures).map(table::Cell::number));
        for result in &self.cells {
            table.row(row(result));
        }
        printer.line(table)?;
        printer.line("")?;
        printer.line(self.sums())?;
        let DownloadSummary {
            pairs,
            pairs_that_agree,
            unmeasured,
            repeated,
            past_bars,
            ..
        } = &self.summary;
        if !pairs.is_empty() {
            let count = pairs.len();
            let apart = pairs.iter().map(SixVsOne::distance).sum::<f64>() / count as f64;
            printer.line(format_args!(
                "one connection against six: {pairs_that_agree} of {count} pairs agree; their ratios are {apart:.3} apart on average"
            ))?;
        }
        printer.line(format_args!(
            "{DIM}{repeated} runs repeated, {unmeasured} settings not measured; {}{DIM:#}",
            self.conditions
        ))?;
        print_exceeded_limits(past_bars, printer)
    }

    fn sums(&self) -> Table {
        let summary = &self.summary;
        error_table(&[
            ("single, no loss", summary.loss_free),
            ("single, loss", summary.lossy),
            ("six or one, no loss", summary.several_loss_free),
            ("six or one, loss", summary.several_lossy),
        ])
    }
}

/// Errors with a name, those that there are.
pub(super) fn error_table(sums: &[(&str, Option<ErrorStats>)]) -> Table {
    let head = SIZES.map(table::Cell::number);
    let mut table = Table::new([table::Cell::word("error of")].into_iter().chain(head));
    for (name, errors) in sums {
        if let Some(errors) = errors {
            table.row([table::Cell::word(name)].into_iter().chain(sizes(errors)));
        }
    }
    table
}

/// What is past its bar, or that nothing is.
pub(super) fn print_exceeded_limits(past_bars: &[String], printer: &Printer) -> anyhow::Result<()> {
    for past in past_bars {
        printer.line(format_args!("{BAD}past its bar{BAD:#}: {past}"))?;
    }
    if past_bars.is_empty() {
        printer.line(format_args!("{GOOD}within all bars{GOOD:#}"))?;
    }
    Ok(())
}

fn row(result: &CellResult<DownloadCell>) -> Vec<table::Cell> {
    let DownloadCell {
        bps,
        rtt_ms,
        loss_permille,
        manner,
        objects,
        bytes,
    } = result.subject;
    vec![
        table::Cell::number(bps / 1_000),
        table::Cell::number(rtt_ms),
        table::Cell::number(f64::from(loss_permille) / 10.0),
        table::Cell::number(manner),
        table::Cell::number(objects),
        table::Cell::number(bytes),
        ms_cell(result.virtual_figure()),
        ms_cell(result.real_figure()),
        error_cell(result.error()),
        runs_cell(result),
        table::Cell::number(result.repeated),
    ]
}

/// Heads of the columns that tell errors.
const SIZES: [&str; 6] = ["settings", "mean", "median", "9 of 10", "most", "bias"];

/// Those columns.
fn sizes(errors: &ErrorStats) -> [table::Cell; 6] {
    let ErrorStats {
        cells,
        mean,
        median,
        p90,
        max,
        bias,
    } = *errors;
    let of = |part: f64| table::Cell::number(percent(part));
    let bias = table::Cell::number(signed_percent(bias));
    [
        table::Cell::number(cells),
        of(mean),
        of(median),
        of(p90),
        of(max),
        bias,
    ]
}

/// A figure of milliseconds, or that there is none.
pub(super) fn ms_cell(figure: Option<f64>) -> table::Cell {
    let text = figure.map_or("–".to_owned(), |figure| format!("{figure:.2}"));
    table::Cell::number(text)
}

/// How many runs count, and of how many if some are missing.
pub(super) fn runs_cell<S>(result: &CellResult<S>) -> table::Cell {
    let (count, asked) = (result.real_ms.len(), result.runs_asked);
    if result.short_of_runs.is_none() {
        return table::Cell::number(count);
    }
    table::Cell::number(format_args!("{count} of {asked}")).styled(BAD)
}

/// An error, or that there is none.
pub(super) fn error_cell(error: Option<f64>) -> table::Cell {
    table::Cell::number(error.map_or("–".to_owned(), signed_percent))
}

fn percent(part: f64) -> String {
    format!("{:.2} %", part * 100.0)
}

fn signed_percent(part: f64) -> String {
    format!("{:+.2} %", part * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages over such networks were loaded ten times, whatever was asked for: the option was refused beside `--pages`.
    #[test]
    fn random_page_loads_run_as_often_as_requested() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("calibrate"));
        let typed = ["calibrate", "--pages", "portal", "--lossy-runs", "2"];
        let matches = command.try_get_matches_from(typed.into_iter().chain(["--runs", "4"]));
        let matches = matches.unwrap_or_else(|refused| panic!("{refused}"));
        let args = <Args as clap::FromArgMatches>::from_arg_matches(&matches);
        let work = args.expect("it matches").runner();
        assert_eq!((work.runs, work.lossy_runs), (4, 2));
    }

    #[test]
    fn a_cell_with_missing_runs_is_marked_in_its_row() {
        let mut result = CellResult {
            subject: download_cell::small()[0],
            virtual_ms: vec![100.0],
            real_ms: vec![100.0, 101.0],
            computed_ms: Vec::new(),
            runs_asked: 2,
            repeated: 0,
            short_of_runs: None,
        };
        let told = |result: &CellResult<DownloadCell>| {
            let mut table = Table::new(["runs"].map(table::Cell::number));
            table.row([runs_cell(result)]);
            anstream::adapter::strip_str(&table.to_string()).to_string()
        };
        assert_eq!(told(&result).lines().last(), Some("   2"));
        result.runs_asked = 3;
        result.short_of_runs = Some("it was late".to_owned());
        assert_eq!(told(&result).lines().last(), Some("2 of 3"));
    }
}
