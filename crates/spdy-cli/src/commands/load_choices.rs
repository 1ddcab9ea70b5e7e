//! The choices of a load that are no network's, as options of whatever loads pages.

use std::num::NonZeroUsize;
use std::time::Duration;

use spdy_frame::compress::Compression;
use spdy_lab::accelerator::choice::Accelerator;
use spdy_lab::cache::Cache;
use spdy_lab::deployment::Deployment;
use spdy_lab::options::{MAX_FRAME_BYTES, MIN_FRAME_BYTES, Options, Push};
use spdy_lab::scheduler::choice::Scheduler;
use spdy_lab::sim::dns::NameLookups;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::{Era, Profile};

use crate::commands::Usage;
use crate::commands::count::at_least_one;
use crate::commands::header_args::{BlockArgs, parse_compression};

/// Choices of a load; what is not given is as the preset has it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Choices of a load")]
pub(crate) struct PageLoadArgs {
    /// Where the other choices start from: today's systems, or Lulic's laboratory of 2013 (its 46 streams at once are
    /// not from the paper, but fitted to its results)
    #[arg(long, value_name = "NAME", default_value = "today", value_parser = Options::PRESETS)]
    preset: String,

    /// The one version of TLS that is spoken: 1.2 or 1.3
    #[arg(long, value_name = "VERSION")]
    tls: Option<TlsVersion>,

    /// Agree on keys by ML-KEM beside X25519, as browsers and servers of today do (TLS 1.3): each hello is 1.1 kB longer
    #[arg(long)]
    ml_kem: bool,

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

    /// How SPDY compresses headers: masked (only values of headers that hold no secret are matched in part), or a level of plain zlib, 0 to 9
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

    /// What holds requests back that the page wants: none, or chromium, as its schedulers do today
    #[arg(
        long,
        value_name = "WHOSE",
        default_value = "none",
        hide_default_value = true
    )]
    scheduler: Scheduler,

    /// Let the head of each document hint at what load waits for and its text does not name, as its graph says
    #[arg(long)]
    hints: bool,

    /// What the client has before a load: cold, nothing; warm, what a first view left that was a moment ago, or as long as
    /// warm:30s, warm:2min, warm:1h or warm:7d says
    #[arg(long, value_name = "STATE")]
    cache: Option<Cache>,

    /// The accelerator before the page's hosts: off; cold, just started; warm, another client had the page from it before
    #[arg(
        long,
        value_name = "STATE",
        default_value = "off",
        hide_default_value = true
    )]
    accelerator: Accelerator,

    /// Round trip behind the access link, paid by each client or accelerator at its origins [default: none]
    #[arg(long, value_name = "TIME", value_parser = parse_backhaul)]
    backhaul: Option<Duration>,

    /// Let the accelerator fetch nothing before it is asked for
    #[arg(long)]
    no_prefetch: bool,

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

impl PageLoadArgs {
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
        options.spdy_window_bits = self.blocks.header_window;
        options.tls_resumption &= !self.no_resumption;
        options.ml_kem |= self.ml_kem;
        options.ip_pooling |= self.ip_pooling;
        options.push = self.push;
        options.deployment = self.deploy.unwrap_or(options.deployment);
        options.priorities &= !self.no_priorities;
        options.scheduler = self.scheduler;
        options.hints |= self.hints;
        options.cache = self.cache.unwrap_or(options.cache);
        if self.accelerator != Accelerator::Off && options.cache != Cache::Cold {
            return Err(Usage(
                "--accelerator and --cache: what a browser keeps of rewritten answers is not modelled"
                    .to_owned(),
            ));
        }
        options.accelerator = self.accelerator;
        options.backhaul = self.backhaul.unwrap_or(options.backhaul);
        options.prefetch &= !self.no_prefetch;
        options.data_frame_bytes = self.frame.unwrap_or(options.data_frame_bytes);
        Ok(options)
    }

    /// What `options`, which came of them, say of themselves: all that a load always has, and of the rest what is not as usual.
    pub(crate) fn notes(&self, options: &Options) -> Vec<(String, String)> {
        let compression = match options.spdy_compression {
            Compression::CrimeSafe => "masked".to_owned(),
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
        let fitted = self.preset == "lulic" && self.streams.is_none();
        let streams = match options.max_concurrent_streams {
            streams if fitted => {
                format!("{streams}, fitted to Lulic's results and no setting of his")
            }
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
            Deployment::FirstParty => {
                Some("hosts of the page's own site; the others speak HTTP/1.1")
            }
        };
        let priorities = (!options.priorities).then_some("all requests have the same");
        let keys = options.ml_kem.then_some("agreed on by ML-KEM too");
        let scheduler = match options.scheduler {
            Scheduler::None => None,
            Scheduler::Chromium => Some("held back as Chromium's schedulers do"),
        };
        let hints = options
            .hints
            .then_some("at what the document's text does not name");
        let accelerator = match options.accelerator {
            Accelerator::Off => None,
            Accelerator::Cold => Some("just started"),
            Accelerator::Warm => Some("another client had the page from it"),
        };
        let prefetch = (!options.prefetch).then_some("none: fetched when it is asked for");
        let paper_urls = options.paper_urls.then_some("as in the paper: /HOST/PATH");
        let always = [
            ("preset", self.preset.clone()),
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
                format!("{} bytes (SPDY, h2)", options.data_frame_bytes),
            ),
        ];
        let always = always.map(|(name, what)| (name, Some(what)));
        let unusual = [
            ("sessions", pooling),
            ("pushes", pushes),
            ("protocol spoken by", deployed),
            ("priorities", priorities),
            ("requests", scheduler),
            ("keys", keys),
            ("hints", hints),
            ("accelerator", accelerator),
            ("prefetch", prefetch),
            ("moved URLs", paper_urls),
        ];
        let unusual = unusual.map(|(name, what)| (name, what.map(str::to_owned)));
        let cache = (options.cache != Cache::Cold).then(|| options.cache.to_string());
        let backhaul = (!options.backhaul.is_zero())
            .then(|| format!("{} ms", options.backhaul.as_nanos() as f64 / 1e6));
        let last = [("cache", cache), ("behind the access link", backhaul)];
        let notes = always.into_iter().chain(unusual).chain(last);
        notes
            .filter_map(|(name, what)| Some((name.to_owned(), what?)))
            .collect()
    }
}

/// A time as networks have it.
fn parse_backhaul(text: &str) -> Result<Duration, String> {
    let profile = format!("rate=1mbit,rtt={text}").parse::<Profile>();
    let profile = profile.map_err(|_| "want a time with its unit, as 20ms".to_owned())?;
    Ok(profile.path.rtt)
}
