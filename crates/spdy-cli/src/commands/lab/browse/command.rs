//! `spdy lab browse`: a real browser behind a link, and a recorded page at the other end.

use std::fs;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use indicatif::ProgressBar;
use spdy_lab::live::browser_cell::{BrowserCell, ProtocolRatio};
use spdy_lab::live::browser_load::{BrowserLoad, BrowserLoader};
use spdy_lab::live::chromium49_load::Chromium49Loader;
use spdy_lab::live::replay::Replay;
use spdy_lab::live::visit_cell::{BrowserVisits, PageOfVisit, VisitCell};
use spdy_net::tls::KeyLogTarget;
use spdy_page::freshness;
use spdy_page::replica::Replica;
use spdy_sim::options::RaceProtocol;
use spdy_sim::race::RaceNetwork;
use spdy_tun::host::SERVER;
use spdy_tun::namespaces::{self, CtrlCPolicy, InnerProcess, ProcessRole};
use spdy_tun::network::{RealNetwork, RealNetworkConfig};

use super::args::Args;
use super::files;
use super::series::Series;
use super::visit_series::VisitSeries;
use crate::args::{networks, open_all};
use crate::commands::lab::calibrate::{check_kernel_tcp, load_average};
use crate::outcome::Outcome;
use crate::output::{Printer, run_name};

/// Time limit for a page to become quiet.
const LOAD_TIMEOUT: Duration = Duration::from_secs(120);

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    args.check()?;
    match namespaces::enter(CtrlCPolicy::EndAll)? {
        ProcessRole::Outer(status) => Ok(Outcome::Code(namespaces::exit_code(status))),
        ProcessRole::Command(_) => anyhow::bail!("unexpected process role: expected no command"),
        ProcessRole::Inner(inside) => browse(args, inside, printer),
    }
}

fn browse(args: &Args, inside: InnerProcess, printer: &Printer) -> anyhow::Result<Outcome> {
    let pause = args.pause()?;
    let replicas = open_all(&args.replicas, pause.is_some(), printer)?;
    let networks = networks(&args.networks)?;
    networks.iter().try_for_each(check_kernel_tcp)?;
    if let Some(folder) = &args.keep_runs {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    inside.set_resolver(SERVER)?;
    let first = networks.first().expect("--network has a default");
    let link = RealNetwork::start(&RealNetworkConfig::new(first.profile.path.clone()))?;
    // With a visit, each page is also loaded alone.
    let series = replicas.len() + usize::from(pause.is_some());
    let loads = series * networks.len() * args.protocols.len();
    let mut browsing = Browsing {
        args,
        link,
        bar: printer.progress(loads as u64 * u64::from(args.runs), "browsing"),
        printer,
    };
    match pause {
        None => browse_page(&mut browsing, &replicas[0], &networks),
        Some(pause) => browse_visit(&mut browsing, &replicas, &networks, pause),
    }
}

/// Loads one page.
fn browse_page(
    browsing: &mut Browsing<'_>,
    replica: &Replica,
    networks: &[RaceNetwork],
) -> anyhow::Result<Outcome> {
    let (args, printer) = (browsing.args, browsing.printer);
    let load_before = load_average();
    let options = args.options()?;
    let mut cells = Vec::new();
    for network in networks {
        for &protocol in &args.protocols {
            let loads = browsing.load(replica, network, protocol)?;
            if let (true, Some(path)) = (cells.is_empty(), &args.keep) {
                let first = loads.first().and_then(|load| load.recording.as_ref());
                first.map_or(Ok(()), |recording| files::keep(recording, path))?;
            }
            cells.push(BrowserCell::new(
                network, protocol, loads, &options, args.seed,
            ));
        }
    }
    browsing.bar.finish_and_clear();
    let series = Series {
        replica: replica.name.clone(),
        load_before,
        load_after: load_average(),
        ratios: ProtocolRatio::all(&cells),
        cells,
    };
    if args.json {
        printer.json(&series)?;
    } else {
        series.print(printer)?;
    }
    let whole = |cell: &BrowserCell| cell.valid_loads().count() >= args.runs as usize;
    Ok(Outcome::done_if(series.cells.iter().all(whole)))
}

/// Loads the pages alone and as a visit.
fn browse_visit(
    browsing: &mut Browsing<'_>,
    replicas: &[Replica],
    networks: &[RaceNetwork],
    pause: Duration,
) -> anyhow::Result<Outcome> {
    let (args, printer) = (browsing.args, browsing.printer);
    let load_before = load_average();
    let options = args.options()?;
    let mut cells = Vec::new();
    for network in networks {
        for &protocol in &args.protocols {
            let loads = browsing.visit(replicas, network, protocol, pause)?;
            cells.push(VisitCell::new(
                network, protocol, loads, pause, &options, args.seed,
            ));
        }
    }
    browsing.bar.finish_and_clear();
    let series = VisitSeries {
        replicas: replicas.iter().map(|it| it.name.clone()).collect(),
        pause_ms: pause.as_secs_f64() * 1e3,
        load_before,
        load_after: load_average(),
        cells,
    };
    if args.json {
        printer.json(&series)?;
    } else {
        series.print(printer)?;
    }
    let runs = args.runs as usize;
    let whole = |cell: &VisitCell| {
        let is_whole = |page: &PageOfVisit| page.alone.valid_loads().count() >= runs;
        cell.pages.iter().all(is_whole) && cell.valid_visits().count() >= runs
    };
    Ok(Outcome::done_if(series.cells.iter().all(whole)))
}

/// A browser behind a link.
struct Browsing<'a> {
    args: &'a Args,
    link: RealNetwork,
    bar: ProgressBar,
    printer: &'a Printer,
}

impl Browsing<'_> {
    fn loader(&self) -> BrowserLoader {
        BrowserLoader {
            browser: self.args.browser.clone(),
            timeout: LOAD_TIMEOUT,
            keep_files: self.args.keep_runs.is_some(),
        }
    }

    /// Loads the page until enough loads count, or too many do not count.
    fn load(
        &mut self,
        replica: &Replica,
        network: &RaceNetwork,
        protocol: RaceProtocol,
    ) -> anyhow::Result<Vec<BrowserLoad>> {
        let args = self.args;
        let chromium49 = args.chromium49()?;
        // It has no key log.
        let secrets = match (&chromium49, &args.keep_runs) {
            (Some(_), Some(_)) => Some(tempfile::tempdir().context("cannot make a folder")?),
            _ => None,
        };
        let key_log = secrets
            .as_ref()
            .map(|folder| folder.path().join("keys.txt"));
        let target = key_log
            .clone()
            .map_or(KeyLogTarget::Disabled, KeyLogTarget::File);
        let stage = Replay::new(replica, protocol, target).context("cannot serve the page")?;
        let loader = self.loader();
        let chromium49 = chromium49.map(|program| Chromium49Loader {
            program,
            timeout: LOAD_TIMEOUT,
            key_log,
        });
        self.repeat(network, |browsing, number| {
            let link = &mut browsing.link;
            let mut load = match &chromium49 {
                Some(loader) => loader.load(link, &stage, protocol)?,
                None => loader.load(link, &stage)?,
            };
            if let (Some(folder), Some(run_files)) = (&args.keep_runs, load.run_files.take()) {
                let name = run_name(&replica.name, protocol.name(), &network.name, number + 1);
                let (recording, printer) = (load.recording.as_ref(), browsing.printer);
                let write = || files::write(&run_files, recording, folder, &name, printer);
                browsing.bar.suspend(write)?;
            }
            let does_count = load.exclusion_reason().is_none();
            Ok((load, does_count))
        })
    }

    /// Loads the pages alone and as a visit, each until enough loads count, or too many do not count.
    fn visit(
        &mut self,
        replicas: &[Replica],
        network: &RaceNetwork,
        protocol: RaceProtocol,
        pause: Duration,
    ) -> anyhow::Result<BrowserVisits> {
        let mut replicas = replicas.to_vec();
        // What was fresh when it was recorded is fresh in the browser's cache.
        let now = SystemTime::now();
        for replica in &mut replicas {
            freshness::shift_dates(replica, now);
        }
        let mut done = BrowserVisits::default();
        for replica in &replicas {
            let loads = self.load(replica, network, protocol)?;
            done.alone.push((replica.name.clone(), loads));
        }
        let stage = Replay::of_visit(&replicas, protocol).context("cannot serve the pages")?;
        let loader = self.loader();
        done.visits = self.repeat(network, |browsing, _| {
            let visit = loader.visit(&mut browsing.link, &stage, pause)?;
            let does_count = visit.exclusion_reason().is_none();
            Ok((visit, does_count))
        })?;
        Ok(done)
    }

    /// Calls `once` with an idle link over `network` until enough results count, or too many do not count. It gets the number of the
    /// call from 0, and returns the result and whether it counts.
    fn repeat<T>(
        &mut self,
        network: &RaceNetwork,
        once: impl Fn(&mut Self, u64) -> anyhow::Result<(T, bool)>,
    ) -> anyhow::Result<Vec<T>> {
        let args = self.args;
        let mut results = Vec::new();
        let mut remaining_runs = args.runs;
        for number in 0..u64::from(args.runs + args.repeats) {
            let seed = args.seed.wrapping_add(number);
            self.link.begin(&network.profile.path, seed)?;
            let (result, does_count) = once(self, number)?;
            results.push(result);
            if does_count {
                self.bar.inc(1);
                remaining_runs -= 1;
            }
            if remaining_runs == 0 {
                break;
            }
        }
        Ok(results)
    }
}
