//! The conditions of a cell by its levels: a network, the options of a load, and the hosts of its page.

use std::num::NonZeroU32;
use std::time::Duration;

use spdy_netem::profile::{Era, Profile};
use spdy_sim::load::{HostLayout, check_page_count};
use spdy_sim::options::{Accelerator, Cache, Deployment, Options};
use spdy_sim::race::RaceNetwork;

use crate::experiment::cell::Cell;
use crate::experiment::clock::Clock;
use crate::experiment::error::PlanError;
use crate::experiment::factor::Factor;
use crate::experiment::factor_level::{shards as parse_shards, visit as parse_visit};
use crate::experiment::server_program::ServerProgram;

/// The network and the options of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// The network; its name has its settings in full.
    pub network: RaceNetwork,
    /// The options of a load.
    pub options: Options,
    /// Distribution of the page's resources over hosts.
    pub hosts: HostLayout,
    /// The pause between two pages, if they are one visit.
    pub visit: Option<Duration>,
    /// The clock.
    pub clock: Clock,
    /// The program that serves the page.
    pub server: ServerProgram,
}

impl Conditions {
    /// The conditions of `cell`.
    ///
    /// # Errors
    ///
    /// Levels that contradict each other, such as a rate and a rate for one direction.
    pub fn of(cell: &Cell<'_>) -> Result<Self, PlanError> {
        let conditions = Self::of_levels(cell.levels());
        let checked = conditions.and_then(|conditions| {
            if conditions.visit.is_some() {
                check_page_count(cell.plan().pages().len())?;
            }
            conditions.server.check_protocol(cell.protocol())?;
            Ok(conditions)
        });
        checked.map_err(|what| PlanError::Cell {
            key: cell.key(),
            what,
        })
    }

    /// The conditions of `levels`, which are in the order of their factors.
    ///
    /// # Errors
    ///
    /// The contradiction.
    pub(crate) fn of_levels(levels: &[(Factor, &str)]) -> Result<Self, String> {
        let LoadChoices {
            options,
            hosts,
            visit,
        } = choices_of(levels)?;
        let profile = profile(levels)?;
        let network = RaceNetwork {
            name: profile.settings(),
            profile,
        };
        let clock = level(levels, Factor::Clock).and_then(|level| level.parse().ok());
        let server = level(levels, Factor::Server).and_then(|level| level.parse().ok());
        let conditions = Self {
            network,
            options,
            hosts,
            visit,
            clock: clock.unwrap_or_default(),
            server: server.unwrap_or_default(),
        };
        conditions.check_server()?;
        match conditions.clock {
            Clock::Virtual => Ok(conditions),
            Clock::Real => conditions.in_real_time(),
        }
    }

    /// Checks that its server supports the other levels.
    fn check_server(&self) -> Result<(), String> {
        let Self { server, clock, .. } = self;
        if *server == ServerProgram::Ours {
            return Ok(());
        }
        if *clock == Clock::Virtual {
            return Err(format!(
                "server={server} serves through the kernel: expected clock=real"
            ));
        }
        match self.options.deployment {
            Deployment::All => Ok(()),
            other => Err(format!(
                "server={server} speaks one protocol on all hosts: expected deploy=all, found deploy={other}"
            )),
        }
    }

    /// The same, if real time supports it.
    fn in_real_time(self) -> Result<Self, String> {
        let Options {
            accelerator,
            backhaul,
            ..
        } = &self.options;
        if *accelerator != Accelerator::Off || !backhaul.is_zero() {
            let what = "clock=real: an accelerator and the network behind the access link need clock=virtual";
            return Err(what.to_owned());
        }
        match self.tcp() {
            Era::Today => Ok(self),
            era => Err(format!(
                "clock=real uses the kernel's TCP, not that of {era}: expected tcp=today"
            )),
        }
    }

    /// TCP of both ends; in real time it is the kernel's.
    #[must_use]
    pub fn tcp(&self) -> Era {
        self.options.tcp_era.unwrap_or(self.network.profile.era)
    }

    /// Segments that servers send before the first acknowledgement; `None` if the kernel decides.
    #[must_use]
    pub fn initial_window(&self) -> Option<u32> {
        match self.clock {
            Clock::Virtual => {
                let config = self.network.config(&self.options);
                Some(config.server_tcp.initial_window_segments)
            }
            Clock::Real => {
                let of_network = self.network.profile.initial_window;
                self.options.initial_window.or(of_network)
            }
        }
    }

    /// Delay that each pass of a pipe adds.
    #[must_use]
    pub fn delay(&self) -> Duration {
        let path = &self.network.profile.path;
        path.rtt / (2 * path.topology.passes())
    }
}

/// What levels choose of a load, besides its network and clock.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadChoices {
    /// The options of the load.
    pub options: Options,
    /// Distribution of the page's resources over hosts.
    pub hosts: HostLayout,
    /// The pause between two pages, if they are one visit.
    pub visit: Option<Duration>,
}

/// The choices by `levels`, which are in the order of their factors; other factors are ignored.
///
/// # Errors
///
/// The contradiction.
pub fn choices_of(levels: &[(Factor, &str)]) -> Result<LoadChoices, String> {
    let mut options = Options::default();
    // A preset sets all options, so it precedes other options in their order.
    for (factor, level) in levels {
        factor.apply(level, &mut options)?;
    }
    let is_accelerated = options.accelerator != Accelerator::Off;
    if is_accelerated && options.cache != Cache::Cold {
        let what = "accelerator and cache: browser caching of rewritten responses is not modelled; give one of them";
        return Err(what.to_owned());
    }
    let shards = level(levels, Factor::Shard).and_then(parse_shards);
    let fold = level(levels, Factor::Fold) == Some("yes");
    let hosts = HostLayout::of(fold, shards.unwrap_or(NonZeroU32::MIN))?;
    if is_accelerated && hosts == HostLayout::Folded {
        let what = "accelerator and fold: both map other hosts below /.spdy/1/ of the page's host; give one of them";
        return Err(what.to_owned());
    }
    let visit = level(levels, Factor::Visit).and_then(parse_visit).flatten();
    if is_accelerated && visit.is_some() {
        let what = "accelerator and visit: a visit has no accelerator; give one of them";
        return Err(what.to_owned());
    }
    Ok(LoadChoices {
        options,
        hosts,
        visit,
    })
}

fn level<'a>(levels: &[(Factor, &'a str)], factor: Factor) -> Option<&'a str> {
    let found = levels.iter().find(|(other, _)| *other == factor);
    found.map(|(_, level)| *level)
}

fn profile(levels: &[(Factor, &str)]) -> Result<Profile, String> {
    let mut parts: Vec<String> = level(levels, Factor::Network)
        .into_iter()
        .map(str::to_owned)
        .collect();
    for (factor, level) in levels {
        if let Some(setting) = factor.setting() {
            parts.push(format!("{setting}={level}"));
        }
    }
    let read = |parts: &[String]| {
        let profile = parts.join(",").parse::<Profile>();
        profile.map_err(|error| error.to_string())
    };
    let Some(delay) = level(levels, Factor::Delay) else {
        return read(&parts);
    };
    if level(levels, Factor::Rtt).is_some() {
        return Err("delay sets the round-trip time: give either delay or rtt".to_owned());
    }
    // First parsed as if the delay were the round trip, to learn both and the number of passes.
    parts.push(format!("rtt={delay}"));
    let mut profile = read(&parts)?;
    let passes = profile.path.topology.passes();
    profile.path.rtt = profile.path.rtt * 2 * passes;
    Ok(profile)
}
