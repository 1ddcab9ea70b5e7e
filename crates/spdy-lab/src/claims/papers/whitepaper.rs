//! Google's whitepaper of 2009: 25 of the top 100 sites over two emulated links.

use spdy_frame::compress::Compression;
use spdy_net::tls::TlsVersion;
use spdy_netem::loss::LossModel;
use spdy_netem::profile::Era;
use spdy_sim::options::{Options, Push, RaceProtocol};

use crate::claims::claim::{Claim, ClaimedResult, MeasureFn, Paper, Test, Trend};
use crate::claims::factor::ClaimFactor;
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting};
use crate::claims::statistics::saving;

const TABLE: &str = "25 of the top 100 sites, 1 % loss; here: pages of 2012-13 by --corpus, 60 ms, TCP of 2009 with an initial \
                     window of 3, six connections a host";
const ADVANCED: &str = "as for dsl-single; the paper does not state what was pushed or hinted; here: all resources of the page, or \
                        those that its text does not name and that load waits for";
const ROW: &str = "4 Mbit/s down, 1 up; the paper does not state the pages, their number of hosts and the rest; here as above, SPDY on \
                   one host";

/// Systems of 2009.
pub(crate) fn options_2009() -> Options {
    Options {
        tls: TlsVersion::Tls12,
        tcp_era: Some(Era::Y2009),
        initial_window: Some(3),
        spdy_compression: Compression::Zlib(9),
        ..Options::default()
    }
}

/// HTTP against SPDY without TLS, with a session for each host.
pub(crate) fn plain(network: &str) -> Setting {
    let protocols = (RaceProtocol::Http, RaceProtocol::SpdyPlain);
    Setting::new(network, protocols, &options_2009())
}

fn one_host(network: &str) -> Setting {
    let mut setting = plain(network);
    setting.other.folded = true;
    setting
}

fn in_tls(network: &str) -> Setting {
    let mut setting = one_host(network);
    setting.other.protocol = RaceProtocol::Spdy;
    setting
}

/// Everything on one host, which pushes all of it.
fn pushed(network: &str) -> Setting {
    let mut setting = one_host(network);
    setting.other.options.push = Push::All;
    setting
}

/// Everything on one host, which sends hints for resources that the page's text does not name.
fn hinted(network: &str) -> Setting {
    let mut setting = one_host(network);
    setting.other.options.hints = true;
    setting
}

const DSL: &str = "whitepaper-dsl,loss=1%";
const CABLE: &str = "whitepaper-cable,loss=1%";

pub(crate) fn saved(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| saving(pairs, |it| it.load_ms))
}

/// The saving at losses of 0 to 2.5 %.
fn by_loss(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    saved_at_losses(bench, pages, setting, &[0, 5, 10, 15, 20, 25])
}

pub(crate) fn saved_at_losses(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
    permille: &[u32],
) -> Result<MeasuredResult, String> {
    let (names, settings) = setting.losses(permille);
    let paired = bench.load_pairs(pages, &settings)?;
    paired.measured(names, |pairs| saving(pairs, |it| it.load_ms))
}

/// The saving at round trips of 20 to 200 ms.
fn by_round_trip(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let (names, settings) = setting.levels(
        &[20_u64, 40, 60, 80, 120, 160, 200],
        |ms| format!("{ms} ms"),
        |it, ms| it.profile.path.rtt = std::time::Duration::from_millis(ms),
    );
    let paired = bench.load_pairs(pages, &settings)?;
    paired.measured(names, |pairs| saving(pairs, |it| it.load_ms))
}

pub(crate) const FACTORS: &[ClaimFactor] = &[
    ClaimFactor::initial_window::<4>("initial window 4"),
    ClaimFactor::initial_window::<10>("initial window 10"),
    ClaimFactor {
        name: "TCP of 2013, window 3",
        change: |setting| setting.both(|options| options.tcp_era = Some(Era::Y2013)),
    },
    ClaimFactor::tcp_today("TCP of today, window 3"),
    ClaimFactor::connections::<2>("HTTP on two connections a host"),
    ClaimFactor::connections::<1>("HTTP on one connection a host"),
    ClaimFactor::NAMES_RESOLVED,
    ClaimFactor {
        name: "HTTP on one host too",
        change: |setting| setting.base.folded = true,
    },
    ClaimFactor::BOTH_IN_TLS,
    ClaimFactor {
        name: "resources in six generations that wait for each other",
        change: |setting| setting.depth = 6,
    },
    ClaimFactor::SMALL_PAGES,
];

const PUSH_FACTORS: &[ClaimFactor] = &[
    ClaimFactor {
        name: "neither pushes nor hints",
        change: |setting| {
            setting.other.options.push = Push::No;
            setting.other.options.hints = false;
        },
    },
    ClaimFactor {
        name: "pushes by the page's graph, within a server's budget",
        change: |setting| setting.other.options.push = Push::ByGraph,
    },
    ClaimFactor {
        name: "no loss",
        change: |setting| {
            setting.profile.path.loss_up = LossModel::None;
            setting.profile.path.loss_down = LossModel::None;
        },
    },
    ClaimFactor::connections::<1>("HTTP on one connection a host"),
];

const fn number(value: f64) -> ClaimedResult {
    ClaimedResult::Number {
        value,
        within: 5.0,
        neutral: Some(0.0),
    }
}

/// A row of the table with pushes or hints.
const fn advanced(
    name: &'static str,
    what: &'static str,
    value: f64,
    setting: fn() -> Setting,
) -> Claim {
    Claim {
        paper: Paper::Whitepaper,
        name,
        what,
        conditions: ADVANCED,
        unit: Unit::Percent,
        expected: number(value),
        test: Test::Run {
            pages: PageSet::Corpus,
            setting,
            measure: saved,
            factors: PUSH_FACTORS,
        },
    }
}

/// A row of the table that is not measured.
const fn prefetched(name: &'static str, what: &'static str, value: f64) -> Claim {
    Claim {
        paper: Paper::Whitepaper,
        name,
        what,
        conditions: "25 of the top 100 sites, 1 % loss",
        unit: Unit::Percent,
        expected: number(value),
        test: Test::CannotRun(
            "the paper does not state what the client fetched before it was named",
        ),
    }
}

const fn row(
    name: &'static str,
    what: &'static str,
    expected: ClaimedResult,
    conditions: &'static str,
    setting: fn() -> Setting,
    measure: MeasureFn,
) -> Claim {
    Claim {
        paper: Paper::Whitepaper,
        name,
        what,
        conditions,
        unit: Unit::Percent,
        expected,
        test: Test::Run {
            pages: PageSet::Corpus,
            setting,
            measure,
            factors: FACTORS,
        },
    }
}

pub(crate) const CLAIMS: &[Claim] = &[
    row(
        "dsl-multi",
        "load time saved by SPDY without TLS, DSL",
        number(27.9),
        TABLE,
        || plain(DSL),
        saved,
    ),
    row(
        "dsl-single",
        "load time saved by SPDY without TLS, everything on one host, DSL",
        number(45.5),
        TABLE,
        || one_host(DSL),
        saved,
    ),
    row(
        "dsl-tls",
        "load time saved by SPDY in TLS, everything on one host, DSL",
        number(39.0),
        TABLE,
        || in_tls(DSL),
        saved,
    ),
    row(
        "cable-multi",
        "load time saved by SPDY without TLS, cable",
        number(43.6),
        TABLE,
        || plain(CABLE),
        saved,
    ),
    row(
        "cable-single",
        "load time saved by SPDY without TLS, everything on one host, cable",
        number(60.2),
        TABLE,
        || one_host(CABLE),
        saved,
    ),
    row(
        "cable-tls",
        "load time saved by SPDY in TLS, everything on one host, cable",
        number(53.2),
        TABLE,
        || in_tls(CABLE),
        saved,
    ),
    advanced(
        "dsl-push",
        "load time saved by SPDY without TLS, everything on one host and pushed, DSL",
        46.3,
        || pushed(DSL),
    ),
    advanced(
        "dsl-hint",
        "load time saved by SPDY without TLS, everything on one host and hinted at, DSL",
        48.3,
        || hinted(DSL),
    ),
    prefetched(
        "dsl-prefetch",
        "load time saved by SPDY in TLS, everything on one host and fetched ahead, DSL",
        42.7,
    ),
    advanced(
        "cable-push",
        "load time saved by SPDY without TLS, everything on one host and pushed, cable",
        59.5,
        || pushed(CABLE),
    ),
    advanced(
        "cable-hint",
        "load time saved by SPDY without TLS, everything on one host and hinted at, cable",
        63.5,
        || hinted(CABLE),
    ),
    prefetched(
        "cable-prefetch",
        "load time saved by SPDY in TLS, everything on one host and fetched ahead, cable",
        55.4,
    ),
    row(
        "loss",
        "load time saved at losses of 0, 0.5, 1, 1.5, 2, 2.5 %: SPDY gains as loss grows",
        ClaimedResult::Series {
            values: &[11.8, 32.5, 41.8, 41.2, 47.7, 43.6],
            within: 5.0,
            trend: Trend::Rising,
        },
        ROW,
        || one_host("whitepaper-cable"),
        by_loss,
    ),
    row(
        "round-trip",
        "load time saved at round trips of 20, 40, 60, 80, 120, 160, 200 ms: SPDY gains as they grow",
        ClaimedResult::Series {
            values: &[12.3, 18.6, 20.1, 23.9, 23.5, 24.1, 26.8],
            within: 5.0,
            trend: Trend::Rising,
        },
        ROW,
        || one_host("whitepaper-cable"),
        by_round_trip,
    ),
];
