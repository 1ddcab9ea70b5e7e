//! The arguments of `spdy lab browse`.

use std::path::PathBuf;
use std::time::Duration;

use spdy_lab::experiment::conditions;
use spdy_lab::experiment::factor::Factor;
use spdy_lab::experiment::factor_level::LoadChoice;
use spdy_record::chromium49;
use spdy_record::error::RecordError;
use spdy_sim::options::{Options, RaceProtocol, Scheduler};

use crate::help::examples;
use crate::outcome::Usage;

/// Arguments of `spdy lab browse`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The page, or the pages of a visit: shipped pages (such as flags, portal, mineki), replicas, .har or .warc files
    #[arg(value_name = "REPLICA", required = true)]
    pub(super) replicas: Vec<String>,

    /// A network by name, or as "down=2mbit,up=384kbit,rtt=100ms"; may be repeated
    #[arg(
        short,
        long = "network",
        value_name = "NAME|SPEC",
        default_value = "cable"
    )]
    pub(super) networks: Vec<String>,

    /// Protocols, of http, https, h2 and h3, or of http, https, spdy and h2 with chromium-49; ratios are relative to the first
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        default_value = "https,h2"
    )]
    pub(super) protocols: Vec<RaceProtocol>,

    /// Required loads of each page, network and protocol that count; with --visit, also visits
    #[arg(short, long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub(super) runs: u32,

    /// Loads of each that may be repeated because they do not count
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub(super) repeats: u32,

    /// Seed of the first load; each further load adds 1
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    pub(super) seed: u64,

    /// Path of the browser, or chromium-49, which scripts/setup-peers installs [default: Chromium or Chrome in PATH]
    #[arg(long, value_name = "PATH")]
    pub(super) browser: Option<PathBuf>,

    /// Load the pages also as one visit, with this pause between two (10s without a value).
    ///
    /// One tab loads them one after the other, with the cache, cookies, names and connections that those before left.
    /// Our client then loads the recordings of the pages as the same visit.
    #[arg(long, value_name = "PAUSE", num_args = 0..=1, require_equals = true, default_missing_value = "10s", value_parser = |text: &str| LoadChoice::new(Factor::Visit, text))]
    visit: Option<LoadChoice>,

    /// Write the recording of the very first load as a replica: the page as this browser requests it, with its 404s
    #[arg(long, value_name = "FILE", conflicts_with = "visit")]
    pub(super) keep: Option<PathBuf>,

    /// Write files of every load to this folder: .replica.gz, .har, .pcapng, .png and
    /// .filmstrip.svg. Only these loads have a Speed Index.
    ///
    /// Their names are PAGE-PROTOCOL-NETWORK-NUMBER. The .replica.gz is the recording that our client loads, for `spdy race`. The .pcapng
    /// has every packet of the link and the TLS secrets, the .png the window after the load, the .filmstrip.svg the window during the load.
    #[arg(long, value_name = "DIR", conflicts_with = "visit")]
    pub(super) keep_runs: Option<PathBuf>,

    /// Print one JSON object instead of the table
    #[arg(long)]
    pub(super) json: bool,
}

pub(crate) const EXAMPLES: &str = examples! {
    "spdy lab browse portal"
    "spdy lab browse page.warc --network 3g,cable --protocols http,https,h2 --runs 5"
    "spdy lab browse page.warc --runs 1 --keep whole.warc.gz    resources that the browser misses become recorded 404s"
    "spdy lab browse page.warc --protocols h2,h3 --keep-runs runs    then tshark -r runs/page-h3-cable-1.pcapng -Y http3"
    "spdy lab browse portal --browser chromium-49 --protocols https,spdy,h2"
    "spdy lab browse home.warc article.warc --visit=3s --protocols h2    one after the other, with one cache"
    "spdy lab browse page.warc --network \"down=2mbit,up=500kbit,rtt=100ms\" --json > page.json"
};

impl Args {
    /// Checks what does not depend on the pages.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let is_chromium49 = self.chromium49()?.is_some();
        for &protocol in &self.protocols {
            check_protocol(protocol, is_chromium49).map_err(Usage)?;
        }
        let pause = self.pause()?;
        if pause.is_some() && is_chromium49 {
            let what = "--visit: Chromium 49 loads single pages: expected a browser of today";
            return Err(Usage(what.to_owned()).into());
        }
        if pause.is_none() && self.replicas.len() > 1 {
            let count = self.replicas.len();
            return Err(Usage(format!(
                "{count} pages: expected one, or --visit to load them one after the other"
            ))
            .into());
        }
        Ok(())
    }

    /// The program of Chromium 49, if that is the browser.
    pub(super) fn chromium49(&self) -> Result<Option<PathBuf>, RecordError> {
        self.browser.as_deref().map_or(Ok(None), chromium49::find)
    }

    /// The pause between two pages of a visit; `None` without a visit.
    pub(super) fn pause(&self) -> anyhow::Result<Option<Duration>> {
        let levels = self.visit.iter().map(|it| (it.factor, &it.level[..]));
        let levels: Vec<_> = levels.collect();
        let choices = conditions::choices_of(&levels).map_err(Usage)?;
        Ok(choices.visit)
    }

    /// The profile of the browser for loads in virtual time.
    pub(super) fn options(&self) -> Result<Options, RecordError> {
        // Our certificates let a browser of today share connections where the recorded ones could have. Its TLS has ML-KEM, and its
        // schedulers are the browser's.
        Ok(match self.chromium49()? {
            Some(_) => Options::chromium_49(),
            None => Options {
                ip_pooling: true,
                ml_kem: true,
                scheduler: Scheduler::Chromium,
                ..Options::default()
            },
        })
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
