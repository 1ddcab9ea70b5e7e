//! Lulic's laboratory: the pages, the two setups that are compared, and factors that may explain a difference.

use spdy_page::replica::Replica;
use spdy_sim::options::{Options, RaceProtocol};

use crate::claims::factor::ClaimFactor;
use crate::claims::setting::{PageSet, Setting};
use crate::lulic::{Parameters, pages};

pub(super) const FACTORS: &[ClaimFactor] = &[
    ClaimFactor {
        name: "100 streams, as mod_spdy would have allowed",
        change: |setting| setting.both(|options| options.max_concurrent_streams = 100),
    },
    ClaimFactor::initial_window::<3>("initial window 3"),
    ClaimFactor {
        name: "TLS 1.3",
        change: |setting| setting.both(|options| options.tls = spdy_net::tls::TlsVersion::Tls13),
    },
    ClaimFactor {
        name: "SPDY without TLS",
        change: |setting| setting.other.protocol = RaceProtocol::SpdyPlain,
    },
    ClaimFactor {
        name: "headers not compressed",
        change: |setting| {
            setting.both(|options| {
                options.spdy_compression = spdy_frame::compress::Compression::Zlib(0);
            });
        },
    },
    ClaimFactor::connections::<2>("two connections a host"),
    ClaimFactor {
        name: "no priorities",
        change: |setting| setting.both(|options| options.priorities = false),
    },
];

pub(super) fn against_http() -> Setting {
    setting(RaceProtocol::Http)
}

pub(super) fn against_https() -> Setting {
    setting(RaceProtocol::Https)
}

/// SPDY against `base`; cells have their networks from the grid.
fn setting(base: RaceProtocol) -> Setting {
    let protocols = (base, RaceProtocol::Spdy);
    Setting::new("lulic:1024kbit:50ms", protocols, &Options::lulic())
}

pub(super) fn flags_against_http() -> Setting {
    Setting {
        browser_ms: Parameters::FITTED.browser_ms,
        ..against_http()
    }
}

pub(super) fn flags_against_https() -> Setting {
    Setting {
        browser_ms: Parameters::FITTED.browser_ms,
        ..against_https()
    }
}

/// HTTPS against HTTP.
pub(super) fn https_against_http() -> Setting {
    let protocols = (RaceProtocol::Http, RaceProtocol::Https);
    Setting::new("lulic:1024kbit:50ms", protocols, &Options::lulic())
}

pub(super) fn flags_https_against_http() -> Setting {
    Setting {
        browser_ms: Parameters::FITTED.browser_ms,
        ..https_against_http()
    }
}

/// The flags page with the fitted size of its images.
pub(super) const FLAGS: PageSet = PageSet::Fitted(fitted_flags);
pub(super) const BING: PageSet = PageSet::StandIn(bing);
pub(super) const YAHOO: PageSet = PageSet::StandIn(yahoo);
pub(super) const AMAZON: PageSet = PageSet::StandIn(amazon);

fn fitted_flags() -> Vec<Replica> {
    vec![Parameters::FITTED.page()]
}

fn bing() -> Vec<Replica> {
    pages::page("lulic-bing").into_iter().collect()
}

fn yahoo() -> Vec<Replica> {
    pages::page("lulic-yahoo").into_iter().collect()
}

fn amazon() -> Vec<Replica> {
    pages::page("lulic-amazon").into_iter().collect()
}
