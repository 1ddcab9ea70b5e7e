//! Factors that are changed one at a time, to see whether they explain a difference.

use spdy_netem::profile::Era;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::options::RaceProtocol;

use crate::claims::setting::Setting;

/// One factor and its change.
pub(crate) struct ClaimFactor {
    /// The factor and its new value.
    pub(crate) name: &'static str,
    pub(crate) change: fn(&mut Setting),
}

impl ClaimFactor {
    /// Lookups cost no time, and none is lost.
    pub(crate) const NAMES_RESOLVED: Self = Self {
        name: "names resolved",
        change: |setting| setting.both(|options| options.name_lookups = NameLookups::HostsFile),
    };

    pub(crate) const BOTH_IN_TLS: Self = Self {
        name: "both in TLS",
        change: |setting| {
            setting.base.protocol = RaceProtocol::Https;
            setting.other.protocol = RaceProtocol::Spdy;
        },
    };

    pub(crate) const SMALL_PAGES: Self = Self {
        name: "the smaller half of the pages",
        change: |setting| setting.small_pages = true,
    };

    /// Current TCP, called `name` in results.
    pub(crate) const fn tcp_today(name: &'static str) -> Self {
        Self {
            name,
            change: |setting| setting.both(|options| options.tcp_era = Some(Era::Today)),
        }
    }

    /// An initial window of `SEGMENTS`.
    pub(crate) const fn initial_window<const SEGMENTS: u32>(name: &'static str) -> Self {
        Self {
            name,
            change: |setting| setting.both(|options| options.initial_window = Some(SEGMENTS)),
        }
    }

    /// This many connections per host for HTTP/1.1, with or without TLS.
    pub(crate) const fn connections<const COUNT: usize>(name: &'static str) -> Self {
        Self {
            name,
            change: |setting| setting.both(|options| options.http1_connections = COUNT),
        }
    }
}
