//! What a cell's levels come to: a network, the choices of a load, and the hosts of its page.

use std::num::NonZeroU32;

use spdy_netem::profile::{Era, Profile};

use crate::accelerator::choice::Accelerator;
use crate::cache::Cache;
use crate::experiment::cell::Cell;
use crate::experiment::error::PlanError;
use crate::experiment::factor::{self, Factor};
use crate::hosts::Hosts;
use crate::options::Options;
use crate::race::RaceNetwork;

/// The network and the choices of a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// The network; its name is its settings in full.
    pub network: RaceNetwork,
    /// The choices of a load.
    pub options: Options,
    /// Where the page's resources lie.
    pub hosts: Hosts,
}

impl Conditions {
    /// The conditions of `cell`.
    ///
    /// # Errors
    ///
    /// Levels that do not go together, as a rate and a rate for one direction.
    pub fn of(cell: &Cell<'_>) -> Result<Self, PlanError> {
        let conflict = |what: String| PlanError::Cell {
            key: cell.key(),
            what,
        };
        let mut options = Options::default();
        // A preset is the ground that the other choices stand on, and comes before them in their order.
        for (factor, level) in cell.levels() {
            factor.choose(level, &mut options).map_err(conflict)?;
        }
        if options.accelerator != Accelerator::Off && options.cache != Cache::Cold {
            let what = "accelerator and cache: what a browser keeps of rewritten answers is not modelled; give one of them";
            return Err(conflict(what.to_owned()));
        }
        let shards = level(cell, Factor::Shard).and_then(factor::shards);
        let fold = level(cell, Factor::Fold) == Some("yes");
        let hosts = Hosts::of(fold, shards.unwrap_or(NonZeroU32::MIN)).map_err(conflict)?;
        let profile = profile(cell).map_err(conflict)?;
        let network = RaceNetwork {
            name: profile.settings(),
            profile,
        };
        Ok(Self {
            network,
            options,
            hosts,
        })
    }

    /// TCP of both ends.
    #[must_use]
    pub fn tcp(&self) -> Era {
        self.options.tcp_era.unwrap_or(self.network.profile.era)
    }

    /// What each pass of a pipe adds to a packet's way.
    #[must_use]
    pub fn delay(&self) -> std::time::Duration {
        let path = &self.network.profile.path;
        path.rtt / (2 * path.topology.passes())
    }
}

fn level<'a>(cell: &Cell<'a>, wanted: Factor) -> Option<&'a str> {
    let found = cell.levels().iter().find(|(factor, _)| *factor == wanted);
    found.map(|(_, level)| *level)
}

fn profile(cell: &Cell<'_>) -> Result<Profile, String> {
    let mut parts: Vec<String> = level(cell, Factor::Network)
        .into_iter()
        .map(str::to_owned)
        .collect();
    for (factor, level) in cell.levels() {
        if let Some(setting) = factor.setting() {
            parts.push(format!("{setting}={level}"));
        }
    }
    let read = |parts: &[String]| {
        let profile = parts.join(",").parse::<Profile>();
        profile.map_err(|error| error.to_string())
    };
    let Some(delay) = level(cell, Factor::Delay) else {
        return read(&parts);
    };
    if level(cell, Factor::Rtt).is_some() {
        return Err("delay makes the round trip: give it, or rtt".to_owned());
    }
    // Read once as if the delay were the round trip, to learn both and how often a packet passes.
    parts.push(format!("rtt={delay}"));
    let mut profile = read(&parts)?;
    let passes = profile.path.topology.passes();
    profile.path.rtt = profile.path.rtt * 2 * passes;
    Ok(profile)
}
