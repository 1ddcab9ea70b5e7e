//! The conditions of a page load (networks, protocol, runs, seed): options of `spdy doctor` and `spdy accelerate audit`.

use spdy_lab::doctor::examination::CHANCE_RUNS;
use spdy_lab::stats::MIN_RUNS;
use spdy_sim::options::RaceProtocol;
use spdy_sim::race::RaceNetwork;

use super::networks::networks;
use crate::output::{Printer, WARN};

/// Networks, protocol, runs and seed.
#[derive(Debug, clap::Args)]
pub(crate) struct ConditionArgs {
    /// A network by name, or as "down=2mbit,up=384kbit,rtt=100ms,loss=0"; may be repeated
    #[arg(
        short,
        long = "network",
        value_name = "NAME|SPEC",
        default_value = "dsl"
    )]
    networks: Vec<String>,

    /// Protocol of the page loads: http, https, spdy, h2 or h3
    #[arg(short, long, value_name = "NAME", default_value = "spdy")]
    pub(crate) protocol: RaceProtocol,

    /// Loads of each kind over networks with random loss or delay; other networks need one [default: 9]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    runs: Option<u32>,

    /// Seed of the first run; each further run adds 1
    #[arg(short, long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
}

impl ConditionArgs {
    /// Loads of each kind over networks with random loss or delay.
    pub(crate) fn runs(&self) -> u32 {
        self.runs.unwrap_or(CHANCE_RUNS)
    }

    /// Loads of each kind over `networks`. One load is enough if no network has random loss or delay.
    pub(crate) fn runs_over(&self, networks: &[RaceNetwork]) -> u32 {
        let has_chance = |network: &RaceNetwork| network.profile.path.is_random();
        match networks.iter().any(has_chance) {
            true => self.runs(),
            false => 1,
        }
    }

    /// The networks. Prints a note if one of them has random loss or delay and there are few runs.
    pub(crate) fn networks(&self, printer: &Printer) -> anyhow::Result<Vec<RaceNetwork>> {
        let networks = networks(&self.networks)?;
        for network in &networks {
            if network.profile.path.is_random() && (self.runs() as usize) < MIN_RUNS {
                let (name, runs) = (&network.name, self.runs());
                let them = if runs == 1 { "run" } else { "runs" };
                printer.note(format_args!(
                    "{WARN}note{WARN:#}: {name} loses or delays packets at random, and with {runs} {them} of each kind a saving \
                     may be random too; --runs 9 gives more certainty"
                ));
            }
        }
        Ok(networks)
    }
}
