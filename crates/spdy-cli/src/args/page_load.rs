//! Options of every command that loads pages in virtual time: TLS, TCP, HTTP, cache, accelerator.

use std::num::NonZeroUsize;

use spdy_frame::compress::Compression;
use spdy_lab::experiment::conditions::{self, LoadChoices};
use spdy_lab::experiment::factor::Factor;
use spdy_lab::experiment::factor_level::LoadChoice;
use spdy_sim::load::HostLayout;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::options::Accelerator;
use spdy_sim::options::Cache;
use spdy_sim::options::Deployment;
use spdy_sim::options::Scheduler;
use spdy_sim::options::{Options, Push};

use super::parse::at_least_one;
use crate::outcome::Usage;

/// Options of a page load; the preset has the value of every option that is not given.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Page load options")]
pub(crate) struct PageLoadArgs {
    /// Set an option of the page load, such as tls=1.2, tcp=2013, hints=yes; may be repeated.
    ///
    /// Options and values are written as factors and levels of an experiment. An unknown name prints all names.
    #[arg(long = "set", value_name = "FACTOR=LEVEL")]
    choices: Vec<LoadChoice>,

    /// Round trip behind the access link, added to each request from the client or accelerator to an origin, such as
    /// 20ms [default: none]
    #[arg(long, value_name = "TIME", value_parser = |text: &str| LoadChoice::new(Factor::Backhaul, text))]
    backhaul: Option<LoadChoice>,

    /// Threads that load pages; the results do not depend on it [default: one a core]
    #[arg(short, long, value_name = "N", value_parser = at_least_one)]
    jobs: Option<NonZeroUsize>,
}

/// Frequent options of a race as separate flags.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Page load options")]
pub(crate) struct RaceChoiceArgs {
    /// Push each page's resources on its own host over SPDY: yes (or no value), or all.
    ///
    /// `yes` pushes the resources that the page needs by its graph, `all` everything that it fetches from its own host.
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "yes", value_parser = |text: &str| LoadChoice::new(Factor::Push, text))]
    push: Option<LoadChoice>,

    /// Hosts that use the protocol: all, or first-party (the page's own site).
    ///
    /// The other hosts use HTTP/1.1, with TLS if the protocol has it.
    #[arg(long, value_name = "WHERE", value_parser = |text: &str| LoadChoice::new(Factor::Deploy, text))]
    deploy: Option<LoadChoice>,

    /// Accelerator in front of the page's hosts: off, cold (just started), warm (it has the page), or known (it also remembers the
    /// congestion window of the client's network)
    #[arg(long, value_name = "STATE", value_parser = |text: &str| LoadChoice::new(Factor::Accelerator, text))]
    accelerator: Option<LoadChoice>,

    /// The pages are one visit, with this pause between two (10s without a value).
    ///
    /// Each page is loaded with the cache, names and connections that pages of its site left before it; with the presets lulic and
    /// chromium-49, pages of any site.
    #[arg(long, value_name = "PAUSE", num_args = 0..=1, require_equals = true, default_missing_value = "10s", value_parser = |text: &str| LoadChoice::new(Factor::Visit, text))]
    visit: Option<LoadChoice>,
}

impl PageLoadArgs {
    /// Threads to load pages on; `None` for one a core.
    pub(crate) fn threads(&self) -> Option<NonZeroUsize> {
        self.jobs
    }

    /// The options of page loads that keep each resource on its host.
    pub(crate) fn options(&self) -> Result<Options, Usage> {
        let choices = self.compile(&[])?;
        let fault = match (choices.hosts, choices.visit) {
            (HostLayout::Recorded, None) => return Ok(choices.options),
            (HostLayout::Recorded, Some(_)) => "--set visit: only `spdy race` loads several pages",
            _ => "--set fold and --set shard: only `spdy race` can move resources to other hosts",
        };
        Err(Usage(fault.to_owned()))
    }

    /// The choices of a race, including the hosts of a page's resources.
    pub(crate) fn race(&self, more: &RaceChoiceArgs) -> Result<LoadChoices, Usage> {
        self.compile(&[&more.push, &more.deploy, &more.accelerator, &more.visit])
    }

    fn compile(&self, more: &[&Option<LoadChoice>]) -> Result<LoadChoices, Usage> {
        let more = more.iter().copied().chain([&self.backhaul]).flatten();
        let choices = self.choices.iter().chain(more);
        let mut levels: Vec<_> = choices.map(|it| (it.factor, &it.level[..])).collect();
        levels.sort_by_key(|(factor, _)| *factor);
        if let Some(twice) = levels.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (name, [(_, first), (_, second)]) = (twice[0].0, [twice[0], twice[1]]);
            return Err(Usage(format!(
                "{name} is set twice, to {first} and {second}: remove one of them"
            )));
        }
        let choices = conditions::choices_of(&levels).map_err(Usage)?;
        let options = &choices.options;
        if options.paper_urls && options.accelerator == Accelerator::Off {
            let message = "urls=paper needs an accelerator: also set accelerator=cold, accelerator=warm or accelerator=known";
            return Err(Usage(message.to_owned()));
        }
        Ok(choices)
    }

    /// The level of `factor`, if the command line sets it.
    fn level(&self, factor: Factor) -> Option<&str> {
        let found = self.choices.iter().find(|it| it.factor == factor);
        found.map(|it| &it.level[..])
    }

    /// Describes `options` for the report: the usual options, and others if they differ from the default.
    pub(crate) fn notes(&self, options: &Options) -> Vec<(String, String)> {
        let compression = match options.spdy_compression {
            Compression::CrimeSafe => "masked".to_owned(),
            Compression::Zlib(level) => format!("zlib, level {level}"),
        };
        let of_network = || "from the network".to_owned();
        let tcp = options
            .tcp_era
            .map_or_else(of_network, |era| era.to_string());
        let initial_window = options
            .initial_window
            .map_or_else(of_network, |window| format!("{window} segments"));
        let tickets = if options.tls_resumption {
            "resumed"
        } else {
            "not resumed"
        };
        let names = match options.name_lookups {
            NameLookups::RoundTrip => "looked up, one round trip each",
            NameLookups::HostsFile => "already resolved",
        };
        let preset = self.level(Factor::Preset).unwrap_or("today");
        let fitted = preset == "lulic" && self.level(Factor::Streams).is_none();
        let streams = match options.max_concurrent_streams {
            streams if fitted => {
                format!("{streams}, fitted to Lulic's results, which do not state it")
            }
            streams => streams.to_string(),
        };
        let pushes = match options.push {
            Push::No => None,
            Push::ByGraph => Some("by the page's graph, over SPDY"),
            Push::All => Some("all resources of the page's own host, over SPDY"),
        };
        let pooling = options
            .ip_pooling
            .then_some("hosts with the same address share a session");
        let deployed = match options.deployment {
            Deployment::All => None,
            Deployment::FirstParty => {
                Some("hosts of the page's own site; other hosts use HTTP/1.1")
            }
        };
        let priorities = (!options.priorities).then_some("none: all requests are equal");
        let keys = options.ml_kem.then_some("with ML-KEM");
        let scheduler = match options.scheduler {
            Scheduler::None => None,
            Scheduler::Chromium => Some("delays requests as Chromium does"),
            Scheduler::Chromium49 => Some("delays requests as Chromium 49 does"),
        };
        let hints = options
            .hints
            .then_some("for resources that the document's text does not name");
        let prefetch = (!options.prefetch).then_some("none: fetched when it is requested");
        let paper_urls = options.paper_urls.then_some("as in the paper: /HOST/PATH");
        let always = [
            ("preset", preset.to_owned()),
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
            ("accelerator", options.accelerator.description()),
            ("prefetch", prefetch),
            ("proxied URLs", paper_urls),
        ];
        let unusual = unusual.map(|(name, what)| (name, what.map(str::to_owned)));
        let cache = (options.cache != Cache::Cold).then(|| options.cache.to_string());
        let backhaul = (!options.backhaul.is_zero())
            .then(|| format!("{} ms", options.backhaul.as_nanos() as f64 / 1e6));
        let think_times = match options.think_time_scale {
            1.0 => None,
            0.0 => Some("not replayed".to_owned()),
            scale => Some(format!("{scale} of the recorded ones")),
        };
        let last = [
            ("cache", cache),
            ("behind the access link", backhaul),
            ("think times", think_times),
        ];
        let notes = always.into_iter().chain(unusual).chain(last);
        notes
            .filter_map(|(name, what)| Some((name.to_owned(), what?)))
            .collect()
    }
}
