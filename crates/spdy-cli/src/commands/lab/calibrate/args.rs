//! The options of `spdy lab calibrate`, and the runs that they request.

use std::num::NonZeroUsize;
use std::time::Duration;

use spdy_lab::calibrate::compare::CellResult;
use spdy_lab::calibrate::download_cell::{self, DownloadCell};
use spdy_lab::calibrate::runner::{CalibrationRunner, Event};
use spdy_lab::calibrate::workload::Workload;
use spdy_sim::options::RaceProtocol;

use super::link::Link;
use crate::args::parse::at_least_one;
use crate::help::examples;
use crate::output::Printer;

/// Arguments of `spdy lab calibrate`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Settings to compare
    #[arg(long, value_name = "SET", default_value = "small")]
    pub(crate) cells: Cells,

    /// Measure only the link instead, by UDP packets at its ends: rates and round trips
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "all", conflicts_with_all = ["cells", "runs", "lossy_runs", "seed", "lanes"])]
    pub(crate) link: Option<Link>,

    /// Compare page loads instead, of these replicas; without a value, of flags and portal
    #[arg(long, num_args = 0.., value_name = "REPLICA", conflicts_with_all = ["cells", "link"])]
    pub(crate) pages: Option<Vec<String>>,

    /// A network of page loads, by name or as "down=2mbit,up=384kbit,rtt=100ms"; may be repeated [default: cable, dsl,
    /// 3g, lte, satellite]
    #[arg(short, long = "network", value_name = "NAME|SPEC", requires = "pages")]
    pub(crate) networks: Vec<String>,

    /// Protocols of page loads
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "http,https,spdy,h2",
        requires = "pages"
    )]
    pub(crate) protocols: Vec<RaceProtocol>,

    /// Required runs of each setting without loss and jitter; their median is compared
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,

    /// Required runs of each setting with loss or jitter; their mean is compared, over the same seeds
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    lossy_runs: u32,

    /// Seed of the first run; each further run adds 1
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,

    /// Links in use at a time; more links delay each other
    #[arg(long, value_name = "N", default_value = "4", value_parser = at_least_one)]
    pub(crate) lanes: NonZeroUsize,

    /// Print one JSON object instead of the tables
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Cells {
    /// 12 settings; takes some seconds
    Small,
    /// 150 single downloads without loss: 250 kbps to 10 Mbps, 10 to 500 ms, 1 kB to 1 MB
    LossFree,
    /// 72 single downloads with 1 and 2 % loss: 1 to 10 Mbps, 20 to 200 ms, 10 kB to 1 MB
    Lossy,
    /// 16 pairs of six connections and one, half of them with loss
    Pairs,
    /// loss-free, lossy and pairs
    All,
}

impl Cells {
    pub(crate) fn cells(self) -> Vec<DownloadCell> {
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
    pub(crate) fn compare<S: Workload>(
        &self,
        subjects: &[S],
        printer: &Printer,
    ) -> anyhow::Result<Vec<CellResult<S>>> {
        let work = self.runner();
        let mut bar = printer.progress(subjects.len() as u64, "loading in virtual time");
        let results = work.run(subjects, |event: &Event<S>| match event {
            Event::Predicted => bar.inc(1),
            Event::Began(all) => {
                bar.finish_and_clear();
                let about = all.as_secs_f64() / work.links as f64;
                let what = format!("loading in real time, about {about:.0} s");
                bar = printer.timed_progress(milliseconds(*all), what);
            }
            Event::Ran(expected) => bar.inc(milliseconds(*expected)),
            Event::Done(..) => {}
        });
        bar.finish_and_clear();
        Ok(results?)
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pages over such networks were always loaded ten times: the option was refused with `--pages`.
    #[test]
    fn random_page_loads_run_as_often_as_requested() {
        let command = <Args as clap::Args>::augment_args(clap::Command::new("calibrate"));
        let typed = ["calibrate", "--pages", "portal", "--lossy-runs", "2"];
        let matches = command.try_get_matches_from(typed.into_iter().chain(["--runs", "4"]));
        let matches = matches.unwrap_or_else(|refused| panic!("{refused}"));
        let args = <Args as clap::FromArgMatches>::from_arg_matches(&matches);
        let work = args.expect("the arguments are valid").runner();
        assert_eq!((work.runs, work.lossy_runs), (4, 2));
    }
}
