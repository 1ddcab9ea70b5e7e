//! `spdy race`: the same pages over the same networks by every protocol, in virtual time.

use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Context;
use spdy_frame::compress::Compression;
use spdy_lab::cache::Cache;
use spdy_lab::deployment::Deployment;
use spdy_lab::hosts::{Hosts, MAX_SHARDS};
use spdy_lab::measure::Load;
use spdy_lab::options::{MAX_FRAME_BYTES, MIN_FRAME_BYTES, Options, Push, RaceProtocol};
use spdy_lab::race::{Race, RaceNetwork};
use spdy_lab::report::{self, Standings};
use spdy_lab::sim::dns::NameLookups;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;
use spdy_page::builtin;
use spdy_page::open::{self, ImportOptions};
use spdy_page::replica::Replica;

use crate::commands::count::at_least_one;
use crate::commands::header_args::{BlockArgs, parse_compression};
use crate::commands::{Outcome, Usage, race_table};
use crate::help::examples;
use crate::printer::{Printer, WARN};

/// Most runs: their results are held until the last is done.
const MAX_RUNS: i64 = 100_000;

/// What `spdy race` is asked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pages to race: shipped names (flags, portal), replicas, .har or .warc files; without any, all shipped ones
    #[arg(value_name = "REPLICA")]
    replicas: Vec<String>,

    /// A named network, or one spelled out as "down=2mbit,up=384kbit,rtt=100ms,loss=0"; may be repeated
    #[arg(short, long = "network", value_name = "NAME|SPEC")]
    networks: Vec<String>,

    /// Protocols, in the order in which they are shown
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

    /// Seed of the first run; the second has the next number
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    seed: u64,

    /// Print one JSON object a load instead of the table
    #[arg(long)]
    json: bool,

    /// Write times and waterfalls to this file, as HTML that needs no network
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,

    /// Spread what each page has on its own host over N hosts of one address, itself among them
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_SHARDS)))]
    shard: u32,

    /// Let each page's own host serve what other hosts do
    #[arg(long)]
    fold: bool,

    #[command(flatten)]
    choices: Choices,
}

/// Choices of a load; what is not given is as the preset has it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Choices of a load")]
pub(crate) struct Choices {
    /// Where the other choices start from: today's systems, or Lulic's laboratory of 2013 (its 38 streams at once are
    /// no setting of his, but fitted to his results)
    #[arg(long, value_name = "NAME", default_value = "today", value_parser = Options::PRESETS)]
    preset: String,

    /// The one version of TLS that is spoken: 1.2 or 1.3
    #[arg(long, value_name = "VERSION")]
    tls: Option<TlsVersion>,

    /// TCP of both ends, else that of the network
    #[arg(long, value_name = "ERA")]
    tcp: Option<Tcp>,

    /// Segments that a server may send before it hears of the first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    initial_window: Option<u32>,

    /// How the client learns addresses
    #[arg(long, value_name = "HOW")]
    dns: Option<Dns>,

    /// HTTP/1.1 connections to one host at a time
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    connections: Option<NonZeroUsize>,

    /// Streams that a server allows at once on one session
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    streams: Option<u32>,

    /// How SPDY compresses headers: masked (a secret matches the whole of itself or nothing), or a level of plain zlib, 0 to 9
    #[arg(long, value_name = "HOW", value_parser = parse_compression)]
    compression: Option<Compression>,

    #[command(flatten)]
    blocks: BlockArgs,

    /// Let hosts that were recorded at one address share a session in TLS, as if one certificate covered them
    #[arg(long)]
    ip_pooling: bool,

    /// Push over SPDY what each page needs of its own host, as its graph says (yes, or nothing said), or all that it fetches
    /// there (all), and answer requests with that
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_value = "no", default_missing_value = "yes", hide_default_value = true)]
    push: Push,

    /// Which hosts speak the protocol: all, or first-party, those of the page's own site; the others speak HTTP/1.1, in
    /// TLS if the protocol is
    #[arg(long, value_name = "WHERE")]
    deploy: Option<Deployment>,

    /// Give all requests the same priority
    #[arg(long)]
    no_priorities: bool,

    /// Let the head of each document hint at what load waits for and its text does not name, as its graph says
    #[arg(long)]
    hints: bool,

    /// What the client has before a load: cold, nothing; warm, what a first view left that was a moment ago, or as long as
    /// warm:30s, warm:2min, warm:1h or warm:7d says
    #[arg(long, value_name = "STATE")]
    cache: Option<Cache>,

    /// Largest DATA frame that servers send, bytes (SPDY, h2) [default: 16384]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(i64::from(MIN_FRAME_BYTES)..=i64::from(MAX_FRAME_BYTES)))]
    frame: Option<u32>,

    /// Make a full TLS handshake on every connection
    #[arg(long)]
    no_resumption: bool,

    /// Threads to load pages on; changes no result [default: one a core]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    threads: Option<NonZeroUsize>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Tcp {
    /// Linux as it is now
    Today,
    /// Linux 3.x: initial window 10, CUBIC, no RACK
    #[value(name = "2013")]
    Y2013,
    /// Before initial windows grew
    #[value(name = "2009")]
    Y2009,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Dns {
    /// Ask a resolver at the far end, one round trip a name
    RoundTrip,
    /// Know them
    Known,
}

/// What is raced over where nothing is asked for: what people had, from the slowest to the farthest.
const NETWORKS: [&str; 6] = ["dsl", "cable", "3g", "lte", "fibre", "satellite"];

pub(crate) const EXAMPLES: &str = examples! {
    "spdy race"
    "spdy race portal --network 3g --network satellite --runs 5"
    "spdy race page.har --network \"down=2mbit,up=384kbit,rtt=100ms,loss=0.01\" --report page.html"
    "spdy race flags --protocols http,spdy --tls 1.2 --tcp 2013 --json"
    "spdy race portal --network lte --protocols h2,h3"
};

pub(crate) fn run(args: &Args, printer: &Printer) -> anyhow::Result<Outcome> {
    let race = race(args, printer)?;
    let bar = printer.progress(race.total() as u64, "racing");
    let mut said = Ok(());
    let loads = race.run_while(|progress| {
        if args.json {
            said = printer.json(progress.load);
        }
        bar.inc(1);
        if said.is_err() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    });
    bar.finish_and_clear();
    said?;
    if !args.json {
        printer.line(race_table::render(&Standings::of(&loads), printer.width()))?;
    }
    if let Some(path) = &args.report {
        write_report(path, &loads, &race, &args.choices)?;
        printer.note(format_args!("report: {}", path.display()));
    }
    tell_failures(&loads, printer);
    let broken = loads.iter().filter(|load| !load.failures.is_empty());
    match broken.count() {
        0 => Ok(Outcome::Done),
        count => anyhow::bail!("{count} of {} loads are not whole", loads.len()),
    }
}

/// What was asked, with every name looked up.
fn race(args: &Args, printer: &Printer) -> anyhow::Result<Race> {
    let shipped = || builtin::NAMES.map(str::to_owned).to_vec();
    let mut names = if args.replicas.is_empty() {
        shipped()
    } else {
        args.replicas.clone()
    };
    retain_first(&mut names);
    let networks = networks(&args.networks)?;
    let mut replicas = Vec::with_capacity(names.len());
    for name in &names {
        let opened = open_replica(name, &ImportOptions::default())?;
        if !opened.notes.skipped.is_empty() {
            printer.note(format_args!("{WARN}{name}{WARN:#}: {}", opened.notes));
        }
        let mut replica = opened.replica;
        // Results tell pages apart by name, and two files may hold the same page.
        if replicas
            .iter()
            .any(|other: &Replica| other.name == replica.name)
        {
            replica.name.clone_from(name);
        }
        replicas.push(replica);
    }
    let shards = NonZeroU32::new(args.shard).expect("clap lets none below 1 through");
    let hosts = Hosts::of(args.fold, shards).map_err(Usage)?;
    let mut protocols = args.protocols.clone();
    retain_first(&mut protocols);
    Ok(Race {
        replicas,
        networks,
        protocols,
        runs: args.runs,
        seed: args.seed,
        hosts,
        options: args.choices.options()?,
        threads: args.choices.threads,
    })
}

/// What comes a second time goes.
fn retain_first<T: PartialEq + Clone>(items: &mut Vec<T>) {
    let mut seen = Vec::with_capacity(items.len());
    items.retain(|item| {
        let new = !seen.contains(item);
        if new {
            seen.push(item.clone());
        }
        new
    });
}

/// Opens a page; a name that nothing has is a usage error.
pub(crate) fn open_replica(name: &str, options: &ImportOptions) -> anyhow::Result<open::Opened> {
    open::open_with(name, options).map_err(|error| match error {
        open::OpenError::NoSuch { .. } => Usage(error.to_string()).into(),
        other => anyhow::Error::new(other).context(format!("cannot open {name}")),
    })
}

/// The networks of `asked`, each once, or the named ones.
pub(crate) fn networks(asked: &[String]) -> anyhow::Result<Vec<RaceNetwork>> {
    let mut specs: Vec<&str> = match asked {
        [] => NETWORKS.to_vec(),
        asked => asked.iter().flat_map(|word| split_names(word)).collect(),
    };
    retain_first(&mut specs);
    let network = |spec: &str| {
        RaceNetwork::parse(spec).map_err(|error| Usage(format!("--network {spec}: {error}")).into())
    };
    specs.into_iter().map(network).collect()
}

/// Names share an argument by commas; settings have commas of their own.
fn split_names(word: &str) -> Vec<&str> {
    if word.contains('=') {
        vec![word]
    } else {
        word.split(',').collect()
    }
}

impl Choices {
    /// Threads to load pages on; `None` for one a core.
    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        self.threads
    }

    pub(crate) fn options(&self) -> Result<Options, Usage> {
        let mut options = Options::preset(&self.preset).expect("clap lets only presets through");
        if let Some(tls) = self.tls {
            options.tls = tls;
        }
        if let Some(era) = self.tcp {
            options.tcp_era = Some(match era {
                Tcp::Today => Era::Today,
                Tcp::Y2013 => Era::Y2013,
                Tcp::Y2009 => Era::Y2009,
            });
        }
        options.initial_window = self.initial_window.or(options.initial_window);
        if let Some(dns) = self.dns {
            options.name_lookups = match dns {
                Dns::RoundTrip => NameLookups::RoundTrip,
                Dns::Known => NameLookups::Known,
            };
        }
        if let Some(connections) = self.connections {
            options.http1_connections = connections.get();
        }
        if let Some(streams) = self.streams {
            options.max_concurrent_streams = streams;
        }
        if let Some(compression) = self.compression {
            options.spdy_compression = compression;
        }
        options.spdy_secrets = self.blocks.secrets(options.spdy_compression)?;
        options.spdy_window_bits = self.blocks.header_window;
        options.tls_resumption &= !self.no_resumption;
        options.ip_pooling |= self.ip_pooling;
        options.push = self.push;
        options.deployment = self.deploy.unwrap_or(options.deployment);
        options.priorities &= !self.no_priorities;
        options.hints |= self.hints;
        options.cache = self.cache.unwrap_or(options.cache);
        options.data_frame_bytes = self.frame.unwrap_or(options.data_frame_bytes);
        Ok(options)
    }
}

fn write_report(path: &Path, loads: &[Load], race: &Race, choices: &Choices) -> anyhow::Result<()> {
    let html = report::render(loads, &notes(race, choices));
    std::fs::write(path, html).with_context(|| format!("cannot write {}", path.display()))
}

/// How it was measured, for the head of the report.
fn notes(race: &Race, choices: &Choices) -> Vec<(String, String)> {
    let options = &race.options;
    let seeds = match race.runs {
        1 => race.seed.to_string(),
        runs => format!(
            "{} to {}",
            race.seed,
            race.seed.wrapping_add(u64::from(runs) - 1)
        ),
    };
    let compression = match options.spdy_compression {
        Compression::Masked => {
            let names: Vec<_> = options.spdy_secrets.names().collect();
            format!("masked; secret: {}", names.join(", "))
        }
        Compression::Zlib(level) => format!("zlib, level {level}"),
    };
    let of_network = || "as the network has it".to_owned();
    let tcp = options
        .tcp_era
        .map_or_else(of_network, |era| era.to_string());
    let initial_window = options
        .initial_window
        .map_or_else(of_network, |window| format!("{window} segments"));
    let tickets = if options.tls_resumption {
        "taken up"
    } else {
        "not taken up"
    };
    let names = match options.name_lookups {
        NameLookups::RoundTrip => "looked up, one round trip each",
        NameLookups::Known => "known",
    };
    let fitted = choices.preset == "lulic" && choices.streams.is_none();
    let streams = match options.max_concurrent_streams {
        streams if fitted => format!("{streams}, fitted to Lulic's results and no setting of his"),
        streams => streams.to_string(),
    };
    let pushes = match options.push {
        Push::No => None,
        Push::ByGraph => Some("by the page's graph, over SPDY"),
        Push::All => Some("all that the page fetches of its own host, over SPDY"),
    };
    let pooling = options
        .ip_pooling
        .then_some("shared by hosts of one address");
    let deployed = match options.deployment {
        Deployment::All => None,
        Deployment::FirstParty => Some("hosts of the page's own site; the others speak HTTP/1.1"),
    };
    let priorities = (!options.priorities).then_some("all requests have the same");
    let hints = options
        .hints
        .then_some("at what the document's text does not name");
    let hosts = match race.hosts {
        Hosts::Recorded => None,
        Hosts::Folded => Some("everything on the page's own".to_owned()),
        Hosts::Sharded(shards) => Some(format!("the page's own resources on {shards}")),
    };
    let cache = (options.cache != Cache::Cold).then(|| options.cache.to_string());
    let notes = [
        ("seed", seeds),
        ("preset", choices.preset.clone()),
        ("TLS", format!("{}, sessions {tickets}", options.tls)),
        ("host names", names.to_owned()),
        ("TCP", tcp),
        ("initial window", initial_window),
        (
            "HTTP/1.1 connections a host",
            options.http1_connections.to_string(),
        ),
        ("streams a session", streams),
        ("SPDY headers", compression),
        (
            "largest DATA frame",
            format!("{} bytes", options.data_frame_bytes),
        ),
        ("program", format!("spdy {}", env!("CARGO_PKG_VERSION"))),
    ];
    let networks = race.networks.iter().map(|network| {
        let profile = &network.profile;
        (
            network.name.clone(),
            format!("{} ({})", profile.settings(), profile.source),
        )
    });
    notes
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .chain(pooling.map(|pooling| ("sessions".to_owned(), pooling.to_owned())))
        .chain(pushes.map(|pushes| ("pushes".to_owned(), pushes.to_owned())))
        .chain(deployed.map(|hosts| ("protocol spoken by".to_owned(), hosts.to_owned())))
        .chain(priorities.map(|what| ("priorities".to_owned(), what.to_owned())))
        .chain(hints.map(|what| ("hints".to_owned(), what.to_owned())))
        .chain(hosts.map(|hosts| ("hosts".to_owned(), hosts)))
        .chain(cache.map(|cache| ("cache".to_owned(), cache)))
        .chain(networks)
        .collect()
}

/// One line for each load that did not get all of its page.
fn tell_failures(loads: &[Load], printer: &Printer) {
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
                "{WARN}{replica} over {network} by {protocol}, seed {seed}, is not whole{WARN:#}: {first}{more}"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_networks_may_share_an_argument_and_a_specification_may_not() {
        assert_eq!(split_names("dsl,3g"), ["dsl", "3g"]);
        assert_eq!(
            split_names("down=2mbit,up=1mbit,rtt=9ms"),
            ["down=2mbit,up=1mbit,rtt=9ms"]
        );
    }

    #[test]
    fn a_network_that_does_not_exist_is_a_usage_error_that_lists_those_that_do() {
        let error = networks(&["dls".to_owned()]).unwrap_err();
        let usage = error.downcast_ref::<Usage>().expect("a usage error");
        for name in NETWORKS {
            assert!(usage.0.contains(name), "no {name} in {}", usage.0);
        }
    }
}
