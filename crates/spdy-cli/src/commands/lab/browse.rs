//! `spdy lab browse`: a real browser behind a link, and a recorded page at the other end.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use serde::Serialize;
use spdy_lab::live::browser_cell::{BrowserCell, ProtocolRatio};
use spdy_lab::live::browser_load::{BrowserLoad, BrowserLoader};
use spdy_lab::live::chromium49_load::Chromium49Loader;
use spdy_lab::live::replay::Replay;
use spdy_lab::live::run_files::{CAPTURE_BYTES, RunFiles};
use spdy_lab::stats::median;
use spdy_net::tls::KeyLogTarget;
use spdy_page::archive;
use spdy_page::har_export;
use spdy_page::open::ImportOptions;
use spdy_page::replica::Replica;
use spdy_record::chromium49;
use spdy_record::error::RecordError;
use spdy_sim::options::Scheduler;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use spdy_tun::host::SERVER;
use spdy_tun::namespaces::{self, CtrlCPolicy, InnerProcess, ProcessRole};
use spdy_tun::network::{RealNetwork, RealNetworkConfig};

use super::calibrate::{check_kernel_tcp, error_cell, load_average, ms_cell};
use crate::args::{networks, open_replica};
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{AtomicFile, Cell, DIM, Printer, Table, WARN};

/// Time limit for a page to become quiet.
const LOAD_TIMEOUT: Duration = Duration::from_secs(120);

/// Arguments of `spdy lab browse`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The page: a shipped page (such as flags, portal, mineki), a replica, .har or .warc file
    #[arg(value_name = "REPLICA")]
    replica: String,

    /// A network by name, or as "down=2mbit,up=384kbit,rtt=100ms"; may be repeated
    #[arg(
        short,
        long = "network",
        value_name = "NAME|SPEC",
        default_value = "cable"
    )]
    networks: Vec<String>,

    /// Protocols, of http, https, h2 and h3, or of http, https, spdy and h2 with chromium-49; ratios are relative to the first
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "https,h2"
    )]
    protocols: Vec<RaceProtocol>,

    /// Required loads of each page, network and protocol that count
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: u32,

    /// Loads of each that may be repeated because they do not count
    #[arg(long, value_name = "N", default_value_t = 5)]
    repeats: u32,

    /// Seed of the first load; each further load adds 1
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Path of the browser, or chromium-49, which scripts/setup-peers installs [default: Chromium or Chrome in PATH]
    #[arg(long, value_name = "PATH")]
    browser: Option<PathBuf>,

    /// Write the recording of the very first load as a replica: the page as this browser requests it, with its 404s
    #[arg(long, value_name = "FILE")]
    keep: Option<PathBuf>,

    /// Write files of every load to this folder, for other programs: .har, .pcapng, .png and
    /// .filmstrip.svg. Only these loads have a Speed Index.
    ///
    /// Their names are PAGE-PROTOCOL-NETWORK-NUMBER. The .pcapng has every packet of the link and the TLS secrets, the
    /// .png the window after the load, the .filmstrip.svg the window during the load.
    #[arg(long, value_name = "DIR")]
    keep_runs: Option<PathBuf>,

    /// Print one JSON object instead of the table
    #[arg(long)]
    json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab browse portal"
    "spdy lab browse page.warc --network 3g,cable --protocols http,https,h2 --runs 5"
    "spdy lab browse page.warc --runs 1 --keep whole.warc.gz    resources that the browser misses become recorded 404s"
    "spdy lab browse page.warc --protocols h2,h3 --keep-runs runs    then tshark -r runs/page-h3-cable-1.pcapng -Y http3"
    "spdy lab browse portal --browser chromium-49 --protocols https,spdy,h2"
    "spdy lab browse page.warc --network \"down=2mbit,up=500kbit,rtt=100ms\" --json > page.json"
};

/// The results of a series.
#[derive(Debug, Serialize)]
struct Series {
    replica: String,
    load_before: Option<f64>,
    load_after: Option<f64>,
    cells: Vec<BrowserCell>,
    ratios: Vec<ProtocolRatio>,
}

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let is_chromium49 = args.chromium49()?.is_some();
    for &protocol in &args.protocols {
        check_protocol(protocol, is_chromium49).map_err(Usage)?;
    }
    match namespaces::enter(CtrlCPolicy::EndAll)? {
        ProcessRole::Outer(status) => Ok(Outcome::Code(namespaces::exit_code(status))),
        ProcessRole::Command(_) => anyhow::bail!("unexpected process role: expected no command"),
        ProcessRole::Inner(inside) => browse(args, inside, printer),
    }
}

/// The reason why the browser does not support `protocol`, if it does not.
fn check_protocol(protocol: RaceProtocol, is_chromium49: bool) -> Result<(), String> {
    match (protocol, is_chromium49) {
        (RaceProtocol::Http | RaceProtocol::Https | RaceProtocol::H2, _)
        | (RaceProtocol::H3, false)
        | (RaceProtocol::Spdy, true) => Ok(()),
        (RaceProtocol::Spdy, false) => Err(
            "--protocols spdy: browsers of today do not support SPDY: expected --browser chromium-49"
                .to_owned(),
        ),
        (other, false) => Err(format!(
            "--protocols {other}: expected http, https, h2 or h3, or spdy with --browser chromium-49"
        )),
        (other, true) => Err(format!(
            "--protocols {other}: expected http, https, spdy or h2 (protocols of Chromium 49)"
        )),
    }
}

fn browse(args: &Args, inside: InnerProcess, printer: &Printer) -> anyhow::Result<Outcome> {
    let replica = open_replica(&args.replica, &ImportOptions::default())?.replica;
    let networks = networks(&args.networks)?;
    networks.iter().try_for_each(check_kernel_tcp)?;
    if let Some(folder) = &args.keep_runs {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot make the folder {}", folder.display()))?;
    }
    inside.set_resolver(SERVER)?;
    let first = networks.first().expect("--network has a default");
    let mut link = RealNetwork::start(&RealNetworkConfig::new(first.profile.path.clone()))?;
    let load_before = load_average();
    let cells = networks.len() * args.protocols.len();
    let bar = printer.progress(cells as u64 * u64::from(args.runs), "browsing");
    let mut done = Vec::with_capacity(cells);
    // The profile of the browser. Our certificates let a browser of today share connections where the recorded ones could have. Its
    // TLS has ML-KEM, and its schedulers are the browser's.
    let options = match args.chromium49()? {
        Some(_) => Options::chromium_49(),
        None => Options {
            ip_pooling: true,
            ml_kem: true,
            scheduler: Scheduler::Chromium,
            ..Options::default()
        },
    };
    for network in &networks {
        for &protocol in &args.protocols {
            let visits = args.visits(&mut link, &replica, network, protocol, &bar, printer)?;
            if let (true, Some(path)) = (done.is_empty(), &args.keep) {
                let first = visits.first().and_then(|visit| visit.recording.as_ref());
                first.map_or(Ok(()), |recording| keep(recording, path))?;
            }
            done.push(BrowserCell::new(
                network, protocol, visits, &options, args.seed,
            ));
        }
    }
    bar.finish_and_clear();
    let series = Series {
        replica: replica.name,
        load_before,
        load_after: load_average(),
        ratios: ProtocolRatio::all(&done),
        cells: done,
    };
    if args.json {
        printer.json(&series)?;
    } else {
        series.print(printer)?;
    }
    let whole = |cell: &BrowserCell| cell.valid_loads().count() >= args.runs as usize;
    Ok(if series.cells.iter().all(whole) {
        Outcome::Done
    } else {
        Outcome::Failed
    })
}

impl Args {
    /// The program of Chromium 49, if that is the browser.
    fn chromium49(&self) -> Result<Option<PathBuf>, RecordError> {
        self.browser.as_deref().map_or(Ok(None), chromium49::find)
    }

    /// Loads the page until enough loads count, or too many do not count.
    fn visits(
        &self,
        link: &mut RealNetwork,
        replica: &Replica,
        network: &RaceNetwork,
        protocol: RaceProtocol,
        bar: &ProgressBar,
        printer: &Printer,
    ) -> anyhow::Result<Vec<BrowserLoad>> {
        let chromium49 = self.chromium49()?;
        // It has no key log.
        let secrets = match (&chromium49, &self.keep_runs) {
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
        let visitor = BrowserLoader {
            browser: self.browser.clone(),
            timeout: LOAD_TIMEOUT,
            keep_files: self.keep_runs.is_some(),
        };
        let chromium49 = chromium49.map(|program| Chromium49Loader {
            program,
            timeout: LOAD_TIMEOUT,
            key_log,
        });
        let mut visits = Vec::new();
        let mut remaining_runs = self.runs;
        for number in 0..u64::from(self.runs + self.repeats) {
            link.begin(&network.profile.path, self.seed.wrapping_add(number))?;
            let mut visit = match &chromium49 {
                Some(loader) => loader.load(link, &stage, protocol)?,
                None => visitor.load(link, &stage)?,
            };
            if let (Some(folder), Some(run_files)) = (&self.keep_runs, visit.run_files.take()) {
                let name = run_name(&replica.name, protocol, &network.name, number + 1);
                let recording = visit.recording.as_ref();
                bar.suspend(|| write(&run_files, recording, folder, &name, printer))?;
            }
            let does_count = visit.exclusion_reason().is_none();
            visits.push(visit);
            if does_count {
                bar.inc(1);
                remaining_runs -= 1;
            }
            if remaining_runs == 0 {
                break;
            }
        }
        Ok(visits)
    }
}

/// A name for the files of a load.
fn run_name(page: &str, protocol: RaceProtocol, network: &str, number: u64) -> String {
    let is_odd = |c: char| !(c.is_ascii_alphanumeric() || ".,=".contains(c));
    let [page, network] = [page, network].map(|name| name.replace(is_odd, "-"));
    format!("{page}-{protocol}-{network}-{number}")
}

/// Writes a recording as a replica.
fn keep(recording: &Replica, path: &Path) -> anyhow::Result<()> {
    let gzip = path.extension().is_some_and(|extension| extension == "gz");
    let bytes = archive::encode(recording, gzip);
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes the files of one load, one at a time, so that memory holds only one of them.
fn write(
    run_files: &RunFiles,
    recording: Option<&Replica>,
    folder: &Path,
    name: &str,
    printer: &Printer,
) -> anyhow::Result<()> {
    // Not with_extension: a network may have a dot in its name.
    let path = |ending: &str| folder.join(format!("{name}.{ending}"));
    if let Some(recording) = recording {
        AtomicFile::create(&path("har"))?.write(&har_export::export(recording))?;
    }
    AtomicFile::create(&path("pcapng"))?.write_by(|file| run_files.write_pcapng(file))?;
    match &run_files.png {
        Some(png) => AtomicFile::create(&path("png"))?.write(png)?,
        None => printer.note(format_args!(
            "{WARN}no {}{WARN:#}: the browser rendered nothing",
            path("png").display()
        )),
    }
    if !run_files.filmstrip.screenshots.is_empty() {
        let svg = run_files.filmstrip.svg();
        AtomicFile::create(&path("filmstrip.svg"))?.write(svg.as_bytes())?;
    }
    if run_files.left_out() > 0 {
        let (omitted, most) = (run_files.left_out(), CAPTURE_BYTES >> 20);
        printer.note(format_args!(
            "{WARN}{name}.pcapng ends after {most} MiB{WARN:#}: {omitted} later packets are missing"
        ));
    }
    Ok(())
}

impl Series {
    /// What a user sees: the table of paints, layout shifts and blocking time.
    fn paints(&self) -> Table {
        let words = ["network", "protocol"].map(Cell::word);
        let figures = [
            "FCP ms",
            "simulated ms",
            "difference",
            "LCP ms",
            "simulated ms",
            "difference",
            "CLS",
            "TBT ms",
            "Speed Index ms",
        ];
        let mut table = Table::new(words.into_iter().chain(figures.map(Cell::number)));
        for cell in &self.cells {
            let [fcp, lcp] = [
                cell.median(|visit| visit.metrics.fcp_ms),
                cell.median(|visit| visit.metrics.lcp_ms),
            ];
            let [simulated_fcp, simulated_lcp] = [&cell.virtual_fcp_ms, &cell.virtual_lcp_ms]
                .map(|simulated| median(simulated.iter().flatten().copied()));
            let error = |simulated: Option<f64>, browser: Option<f64>| {
                error_cell(simulated.zip(browser).map(|(ours, its)| ours / its - 1.0))
            };
            let cls = cell.median(|visit| visit.metrics.cls);
            table.row([
                Cell::word(&cell.network),
                Cell::word(cell.protocol),
                ms_cell(fcp),
                ms_cell(simulated_fcp),
                error(simulated_fcp, fcp),
                ms_cell(lcp),
                ms_cell(simulated_lcp),
                error(simulated_lcp, lcp),
                Cell::number(cls.map_or("–".to_owned(), |cls| format!("{cls:.3}"))),
                ms_cell(cell.median(|visit| visit.metrics.tbt_ms)),
                ms_cell(cell.median(|visit| visit.metrics.speed_index_ms)),
            ]);
        }
        table
    }

    fn print(&self, printer: &Printer) -> anyhow::Result<()> {
        let words = ["network", "protocol"].map(Cell::word);
        let figures = [
            "load ms",
            "DCL ms",
            "simulated ms",
            "difference",
            "requests",
            "connections",
            "kB down",
            "count",
            "excluded",
        ];
        let mut table = Table::new(words.into_iter().chain(figures.map(Cell::number)));
        for cell in &self.cells {
            let whole = |figure: &dyn Fn(&BrowserLoad) -> f64| {
                let median = cell.median(|visit| Some(figure(visit)));
                Cell::number(median.map_or("–".to_owned(), |median| format!("{median:.0}")))
            };
            table.row([
                Cell::word(&cell.network),
                Cell::word(cell.protocol),
                ms_cell(cell.load_ms()),
                ms_cell(cell.median(|visit| visit.dom_content_loaded_ms)),
                ms_cell(cell.virtual_load_ms()),
                error_cell(cell.error()),
                whole(&|visit| visit.exchanges as f64),
                whole(&|visit| visit.connections as f64),
                whole(&|visit| visit.link.down.bytes as f64 / 1e3),
                Cell::number(cell.valid_loads().count()),
                Cell::number(cell.excluded().len()),
            ]);
        }
        printer.line(table)?;
        let has_paints = |cell: &BrowserCell| cell.median(|visit| visit.metrics.fcp_ms).is_some();
        if self.cells.iter().any(has_paints) {
            printer.line(self.paints())?;
        }
        for ratio in &self.ratios {
            let ProtocolRatio {
                network,
                base,
                protocol,
                browser,
                ours,
                ..
            } = ratio;
            let verdict = if ratio.agrees() { "agree" } else { "disagree" };
            let interval = match ratio.has_interval() {
                true => format!(" ({:.3} to {:.3})", browser.low, browser.high),
                false => String::new(),
            };
            printer.line(format_args!(
                "{network}: {protocol} over {base} is {:.3}{interval} in the browser and {ours:.3} simulated: they {verdict}",
                browser.value
            ))?;
        }
        for cell in &self.cells {
            let (network, protocol) = (&cell.network, cell.protocol);
            for reason in cell.excluded() {
                printer.note(format_args!(
                    "{WARN}excluded{WARN:#} from {network} by {protocol}: {reason}"
                ));
            }
            if let Some(omitted) = cell.valid_loads().next().map(|visit| &visit.omitted)
                && !omitted.is_empty()
            {
                let each: Vec<_> = omitted
                    .iter()
                    .map(|(kind, count)| format!("{count} {kind}"))
                    .collect();
                printer.note(format_args!(
                    "{WARN}not replayed{WARN:#} over {network} by {protocol}: requests of the page: {}",
                    each.join(", ")
                ));
            }
            let similar = |visit: &BrowserLoad| Some(visit.similar_requests.len() as f64);
            if let Some(count) = cell.median(similar).filter(|count| *count > 0.0) {
                printer.note(format_args!(
                    "{WARN}other queries{WARN:#} over {network} by {protocol}: {count:.0} requests a load got the recording of the same \
                     path with the most similar query (--json lists them)"
                ));
            }
            if let Some(failure) = &cell.virtual_failure {
                printer.note(format_args!(
                    "{WARN}the simulated load over {network} by {protocol} is incomplete{WARN:#}: {failure}"
                ));
            }
        }
        let load = |load: Option<f64>| load.map_or("?".to_owned(), |load| format!("{load:.1}"));
        let (before, after) = (load(self.load_before), load(self.load_after));
        printer.line(format_args!(
            "{DIM}{}; system load {before} to {after}{DIM:#}",
            self.replica
        ))
    }
}
