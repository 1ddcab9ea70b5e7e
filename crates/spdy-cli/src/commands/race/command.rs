//! `spdy race`: the same pages over the same networks by every protocol, in virtual time.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use spdy_lab::doctor::examination::{CHANCE_RUNS, Examination, ExaminationCase};
use spdy_lab::experiment::clock::Clock;
use spdy_lab::experiment::conditions::LoadChoices;
use spdy_page::builtin;
use spdy_service::signals;
use spdy_sim::load::{HostLayout, Load};
use spdy_sim::model::MODEL_VERSION;
use spdy_sim::options::RaceProtocol;
use spdy_sim::race::{Race, RaceNetwork};
use spdy_sim::race_results::{ProtocolLoads, RaceResults};

use super::results_table;
use crate::args::{PageLoadArgs, RaceChoiceArgs, networks, open_all, retain_first};
use crate::commands::doctor::savings_table;
use crate::help::examples;
use crate::outcome::{Outcome, Usage};
use crate::output::{AtomicFile, Printer, WARN, run_name};

/// Largest number of runs: all results are held until the last run ends.
const MAX_RUNS: i64 = 100_000;

/// Arguments of `spdy race`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pages: shipped (flags, portal, or of an experiment, such as mineki), replicas, .har or .warc files [default:
    /// flags and portal]
    #[arg(value_name = "REPLICA")]
    replicas: Vec<String>,

    /// A network by name, or as "down=2mbit,up=384kbit,rtt=100ms,loss=0"; may be repeated
    #[arg(short, long = "network", value_name = "NAME|SPEC")]
    networks: Vec<String>,

    /// Protocols, in the order of the table
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "http,https,spdy,h2"
    )]
    protocols: Vec<RaceProtocol>,

    /// Loads of each page over each network by each protocol
    #[arg(short, long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=MAX_RUNS))]
    runs: u32,

    /// Seed of the first run; each further run adds 1
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object a load instead of the table
    #[arg(long)]
    json: bool,

    /// Write times and waterfalls to this HTML file, which needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Write a qlog of each HTTP/3 connection to this directory, for qvis and other tools.
    ///
    /// The names of the files have the page, protocol, network and seed of the load, and the number and host of the connection. Times
    /// are virtual.
    #[arg(long, value_name = "DIR")]
    qlog: Option<PathBuf>,

    /// After the table, print at most this many changes that help each page most over each network.
    ///
    /// Each change is tested by a page load with the fastest protocol over that network.
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "3", value_parser = clap::value_parser!(u32).range(1..=100))]
    doctor: Option<u32>,

    #[command(flatten)]
    common: RaceChoiceArgs,

    #[command(flatten)]
    choices: PageLoadArgs,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy race"
    "spdy race portal --network 3g --network satellite --runs 5"
    "spdy race page.har --network \"down=2mbit,up=384kbit,rtt=100ms,loss=0.01\" --report page.html"
    "spdy race flags --protocols http,spdy --set tls=1.2 --set tcp=2013 --json"
    "spdy race portal --network lte --protocols h2,h3"
    "spdy race portal --network lte --protocols h3 --qlog logs"
    "spdy race portal --network 3g --doctor            with the changes that help most"
    "spdy race home.warc.gz article.warc.gz --visit    one after the other, with one cache"
    "spdy race portal --protocols https,spdy --deploy first-party --set cache=warm:1h"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let race = race(args, printer)?;
    if let Some(folder) = &args.qlog {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    // Before the race, which may take hours.
    let report = args.report.as_deref().map(AtomicFile::create).transpose()?;
    let stop = stop_at_signal(printer)?;
    let bar = printer.progress(race.total() as u64, "racing");
    let mut outcome = Ok(());
    let loads = race.run_while(|progress| {
        if args.json {
            outcome = printer.json(progress.load);
        }
        if let (Some(folder), Ok(())) = (&args.qlog, &outcome) {
            outcome = write_qlogs(progress.load, folder);
        }
        bar.inc(1);
        if outcome.is_err() || stop.load(Ordering::Relaxed) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    outcome?;
    let is_whole = loads.len() == race.total();
    if !args.json {
        let results = RaceResults::of(&loads);
        printer.line(results_table::render(&results, printer.width()))?;
        if let Some(intervals) = results_table::intervals(&results) {
            printer.line("")?;
            printer.line(intervals)?;
        }
    }
    let examinations = match args.doctor {
        Some(_) if is_whole => examine(&race, &loads, &stop, printer),
        _ => Vec::new(),
    };
    if args.json {
        examinations.iter().try_for_each(|it| printer.json(it))?;
    } else if let Some(most) = args.doctor.filter(|_| is_whole) {
        printer.line("")?;
        printer.line(savings_table::brief(&examinations, most as usize))?;
    }
    if let (Some(file), Some(path)) = (report, &args.report) {
        let notes = notes(&race, &args.choices);
        file.write(spdy_report::render(&loads, &examinations, &notes).as_bytes())?;
        printer.note(format_args!("report: {}", path.display()));
    }
    print_failures(&loads, printer);
    if !is_whole {
        let (done, total) = (loads.len(), race.total());
        anyhow::bail!("stopped by a signal: {done} of {total} loads are done");
    }
    if args.doctor.is_some() && stop.load(Ordering::Relaxed) {
        anyhow::bail!("stopped by a signal: not all changes are tested");
    }
    note_equal_runs(&race, &loads, printer);
    if !args.json {
        note_limitations(&race, printer);
    }
    let broken = loads.iter().filter(|load| !load.failures.is_empty());
    match broken.count() {
        0 => Ok(Outcome::Done),
        count => anyhow::bail!("{count} of {} loads are incomplete", loads.len()),
    }
}

/// Writes the qlogs of a load.
fn write_qlogs(load: &Load, folder: &Path) -> anyhow::Result<()> {
    for log in &load.qlogs {
        let (number, host) = (log.number, &log.host);
        let name = run_name(&load.replica, &load.protocol, &load.network, load.seed);
        let path = folder.join(format!("{name}-{number}-{host}.sqlog"));
        AtomicFile::create(&path)?.write(&log.bytes)?;
    }
    Ok(())
}

/// The requested race, with every name resolved.
fn race(args: &Args, printer: &Printer) -> anyhow::Result<Race> {
    let shipped = || builtin::NAMES.map(str::to_owned).to_vec();
    let mut names = if args.replicas.is_empty() {
        shipped()
    } else {
        args.replicas.clone()
    };
    let LoadChoices {
        mut options,
        hosts,
        visit,
    } = args.choices.race(&args.common)?;
    options.qlog = args.qlog.is_some();
    if visit.is_none() {
        retain_first(&mut names);
    }
    if args.doctor.is_some() && hosts != HostLayout::Recorded {
        let what = "--doctor cannot be used with fold or shard, because it examines the page on its own hosts";
        return Err(Usage(what.to_owned()).into());
    }
    if args.doctor.is_some() && visit.is_some() {
        let what = "--doctor cannot be used with a visit, because it examines each page alone";
        return Err(Usage(what.to_owned()).into());
    }
    let networks = networks(&args.networks)?;
    let replicas = open_all(&names, visit.is_some(), printer)?;
    let mut protocols = args.protocols.clone();
    retain_first(&mut protocols);
    Ok(Race {
        replicas,
        networks,
        protocols,
        runs: args.runs,
        seed: args.seed,
        hosts,
        options,
        visit,
        threads: args.choices.threads(),
    })
}

/// A flag that the first signal to stop sets; the second one ends the program at once.
fn stop_at_signal(printer: &Printer) -> anyhow::Result<Arc<AtomicBool>> {
    let printer = printer.clone();
    signals::stop_flag(move || {
        printer.note(format_args!(
            "{WARN}stopping{WARN:#} after the running loads; press Ctrl-C again to stop at once"
        ));
    })
}

/// Finds the changes that help each page over each network, with the fastest protocol there. Those that `stop` interrupts are omitted.
fn examine(race: &Race, loads: &[Load], stop: &AtomicBool, printer: &Printer) -> Vec<Examination> {
    let results = RaceResults::of(loads);
    let mut options = race.options.clone();
    options.qlog = false;
    let mut cases = Vec::new();
    for page in &results.pages {
        for over in &page.networks {
            let time = |entrant: &&ProtocolLoads<'_>| entrant.typical().load_ms;
            let whole = over.protocols.iter().filter(|entrant| entrant.is_whole());
            let fastest = whole.min_by(|a, b| time(a).total_cmp(&time(b)));
            let replica = race.replicas.iter().find(|it| it.name == page.replica);
            let network = race.networks.iter().find(|it| it.name == over.network);
            let protocol = fastest.and_then(|entrant| entrant.protocol.parse().ok());
            if let (Some(replica), Some(network), Some(protocol)) = (replica, network, protocol) {
                cases.push(ExaminationCase {
                    replica: replica.clone(),
                    network: network.clone(),
                    protocol,
                    options: options.clone(),
                    runs: race.runs.max(CHANCE_RUNS),
                    seed: race.seed,
                });
            }
        }
    }
    let bar = printer.progress(cases.len() as u64, "examining");
    let examine = |case: &ExaminationCase| {
        let examination = case.examine(race.threads, |_, _| match stop.load(Ordering::Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        });
        bar.inc(1);
        examination
    };
    let examinations = cases.iter().map_while(examine).collect();
    bar.finish_and_clear();
    examinations
}

/// The conditions of the race, for the head of the report.
fn notes(race: &Race, choices: &PageLoadArgs) -> Vec<(String, String)> {
    let seeds = match race.runs {
        1 => race.seed.to_string(),
        runs => format!(
            "{} to {}",
            race.seed,
            race.seed.wrapping_add(u64::from(runs) - 1)
        ),
    };
    let hosts = match race.hosts {
        HostLayout::Recorded => None,
        HostLayout::Folded => Some("all resources on the page's host".to_owned()),
        HostLayout::Sharded(shards) => Some(format!("the page's own resources on {shards}")),
    };
    let protocols: Vec<_> = race.protocols.iter().map(|it| it.name()).collect();
    let mut notes: Vec<(String, String)> = [
        ("protocols", protocols.join(", ")),
        ("runs", race.runs.to_string()),
        ("seed", seeds),
        ("clock", Clock::Virtual.to_string()),
        ("model", MODEL_VERSION.to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into();
    notes.extend(choices.notes(&race.options));
    for protocol in &race.protocols {
        let limitation = protocol.limitation();
        notes.extend(limitation.map(|it| (protocol.name().to_owned(), it.to_owned())));
    }
    if let Some(pause) = race.visit {
        let state = match race.options.site_partitions {
            true => "a cache and connections for each site",
            false => "one cache and connections for all sites",
        };
        let seconds = pause.as_secs_f64();
        let visit = format!("one after the other, {seconds} s between two; {state}");
        notes.push(("visit".to_owned(), visit));
    }
    notes.extend(hosts.map(|hosts| ("hosts".to_owned(), hosts)));
    let program = format!("spdy {}", env!("CARGO_PKG_VERSION"));
    notes.push(("program".to_owned(), program));
    notes.extend(race.networks.iter().map(|network| {
        let profile = &network.profile;
        let what = format!("{} ({})", profile.settings(), profile.source);
        (network.name.clone(), what)
    }));
    notes
}

/// Prints a note for each network over which all runs of a protocol are equal: copies of one load must not be taken for agreement.
fn note_equal_runs(race: &Race, loads: &[Load], printer: &Printer) {
    if race.runs < 2 {
        return;
    }
    for RaceNetwork { name, profile } in &race.networks {
        if profile.path.is_random() {
            continue;
        }
        let all_equal = |protocol: &&RaceProtocol| {
            let mut times = BTreeMap::new();
            loads
                .iter()
                .filter(|load| load.network == *name && load.protocol == protocol.name())
                .all(|load| *times.entry(&load.replica).or_insert(load.load_ms) == load.load_ms)
        };
        let equal = race.protocols.iter().filter(all_equal);
        let equal: Vec<_> = equal.map(|protocol| protocol.name()).collect();
        if !equal.is_empty() {
            printer.note(format_args!(
                "{WARN}note{WARN:#}: over {name} all {} runs by {} are equal: nothing in them is random",
                race.runs,
                equal.join(", ")
            ));
        }
    }
}

/// Prints a note for each protocol whose loads lack something of those of browsers.
fn note_limitations(race: &Race, printer: &Printer) {
    for protocol in &race.protocols {
        if let Some(limitation) = protocol.limitation() {
            printer.note(format_args!("{WARN}note{WARN:#}: {protocol}: {limitation}"));
        }
    }
}

/// Prints a line for each incomplete load.
fn print_failures(loads: &[Load], printer: &Printer) {
    for load in loads {
        let Load {
            replica,
            network,
            protocol,
            seed,
            failures,
            ..
        } = load;
        if let [first, others @ ..] = failures.as_slice() {
            let more = match others.len() {
                0 => String::new(),
                count => format!(" (and {count} more)"),
            };
            printer.note(format_args!(
                "{WARN}{replica} over {network} by {protocol}, seed {seed}, is incomplete{WARN:#}: {first}{more}"
            ));
        }
    }
}
