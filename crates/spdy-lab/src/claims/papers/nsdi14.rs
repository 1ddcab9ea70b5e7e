//! Wang et al., NSDI 2014: when SPDY helps and when it hurts, on pages with objects of one size.

use spdy_netem::profile::Era;
use spdy_netem::wire::LinkRate;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::options::{Options, Push, RaceProtocol};

use crate::claims::claim::{BoundSide, Claim, ClaimedResult, Paper, Test, Trend};
use crate::claims::factor::ClaimFactor;
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::runner::{ClaimRunner, ratio_by_page};
use crate::claims::setting::{PageSet, Pages, Setting};
use crate::claims::statistics::{ratio, saving};
use crate::pages::described::Objects;

const PLAIN: &str = "both without TLS, one host, names resolved, initial window 10 (the levels are from the paper's grid, the choice \
                     among them is an assumption)";

fn on(network: &str) -> Setting {
    let options = Options {
        tcp_era: Some(Era::Y2013),
        initial_window: Some(10),
        name_lookups: NameLookups::HostsFile,
        ..Options::default()
    };
    Setting::new(
        network,
        (RaceProtocol::Http, RaceProtocol::SpdyPlain),
        &options,
    )
}

fn fast_far() -> Setting {
    on("down=10mbit,up=10mbit,rtt=200ms")
}

fn slow_far() -> Setting {
    on("down=1mbit,up=1mbit,rtt=200ms")
}

fn fast_near_lossy() -> Setting {
    on("down=10mbit,up=10mbit,rtt=20ms,loss=2%")
}

fn load_ratio(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| ratio(pairs, |it| it.load_ms))
}

fn load_saving(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| saving(pairs, |it| it.load_ms))
}

/// SPDY without priorities against SPDY with them.
fn priorities() -> Setting {
    let mut setting = slow_far();
    setting.base.protocol = RaceProtocol::SpdyPlain;
    setting.base.options.priorities = false;
    setting
}

/// SPDY that pushes all resources against SPDY that pushes by dependency.
fn pushes() -> Setting {
    let mut setting = slow_far();
    setting.base.protocol = RaceProtocol::SpdyPlain;
    setting.base.options.push = Push::All;
    setting.other.options.push = Push::ByGraph;
    setting
}

/// SPDY without pushes against SPDY that pushes by dependency.
fn pushes_or_not() -> Setting {
    let mut setting = pushes();
    setting.base.options.push = Push::No;
    setting
}

/// Ratio at losses of 0, 0.5, 1 and 2 %.
fn by_loss(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let (names, settings) = setting.losses(&[0, 5, 10, 20]);
    let paired = bench.load_pairs(pages, &settings)?;
    paired.measured(names, |pairs| ratio(pairs, |it| it.load_ms))
}

/// Ratio for 2, 8, 32, 128 and 512 objects of 1 kB.
fn by_count(
    bench: &ClaimRunner<'_>,
    _: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    const PAGES: [(&str, Pages); 5] = [
        ("2", || vec![Objects::new(2, 1_000).page()]),
        ("8", || vec![Objects::new(8, 1_000).page()]),
        ("32", || vec![Objects::new(32, 1_000).page()]),
        ("128", || vec![Objects::new(128, 1_000).page()]),
        ("512", || vec![Objects::new(512, 1_000).page()]),
    ];
    ratio_by_page(bench, &PAGES, setting)
}

const PUSH_FACTORS: &[ClaimFactor] = &[
    ClaimFactor {
        name: "everything on one host",
        change: |setting| {
            setting.base.folded = true;
            setting.other.folded = true;
        },
    },
    ClaimFactor {
        name: "10 Mbit/s",
        change: |setting| {
            setting.profile.path.down = LinkRate::Bps(10_000_000);
            setting.profile.path.up = LinkRate::Bps(10_000_000);
        },
    },
    ClaimFactor::initial_window::<3>("initial window 3"),
];

const PAGES: &str = "1 Mbit/s, 200 ms, no loss, without TLS, names resolved, initial window 10; pages of 2012-13 by --corpus, each host \
                     its session, instead of the paper's 200";

const FACTORS: &[ClaimFactor] = &[
    ClaimFactor::initial_window::<3>("initial window 3"),
    ClaimFactor::initial_window::<32>("initial window 32"),
    ClaimFactor {
        name: "TCP of 2009",
        change: |setting| setting.both(|options| options.tcp_era = Some(Era::Y2009)),
    },
    ClaimFactor::tcp_today("TCP of today"),
    ClaimFactor::connections::<1>("one connection a host"),
    ClaimFactor::BOTH_IN_TLS,
];

pub(crate) const CLAIMS: &[Claim] = &[
    Claim {
        paper: Paper::Nsdi14,
        name: "many-small",
        what: "SPDY helps with many small objects: 64 of 1 kB, load to HTTP",
        conditions: PLAIN,
        unit: Unit::Ratio,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Below,
            bound: 1.0,
        },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![Objects::new(64, 1_000).page()]),
            setting: fast_far,
            measure: load_ratio,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "more-objects",
        what: "the more small objects the more it helps: 2, 8, 32, 128, 512 of 1 kB, load to HTTP",
        conditions: PLAIN,
        unit: Unit::Ratio,
        expected: ClaimedResult::Monotone {
            trend: Trend::Falling,
            slack: 0.01,
        },
        test: Test::Run {
            pages: PageSet::Pages(Vec::new),
            setting: fast_far,
            measure: by_count,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "large-slow",
        what: "large objects on a slow link without loss: no difference, 64 of 100 kB, load to HTTP",
        conditions: PLAIN,
        unit: Unit::Ratio,
        expected: ClaimedResult::Number {
            value: 1.0,
            within: 0.02,
            neutral: None,
        },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![Objects::new(64, 100_000).page()]),
            setting: slow_far,
            measure: load_ratio,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "large-lossy",
        what: "one connection is a burden under high loss: 16 objects of 100 kB at 2 %, load to HTTP",
        conditions: PLAIN,
        unit: Unit::Ratio,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 1.0,
        },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![Objects::new(16, 100_000).page()]),
            setting: fast_near_lossy,
            measure: load_ratio,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "loss-hurts",
        what: "the more loss the less it helps: 16 objects of 100 kB at 0, 0.5, 1, 2 %, load to HTTP",
        conditions: PLAIN,
        unit: Unit::Ratio,
        expected: ClaimedResult::Monotone {
            trend: Trend::Rising,
            slack: 0.05,
        },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![Objects::new(16, 100_000).page()]),
            setting: fast_near_lossy,
            measure: by_loss,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "real-pages",
        what: "with dependencies and computation load time saved falls to 7 % at low bandwidth and long round trips",
        conditions: "1 Mbit/s, 200 ms, no loss, both without TLS; pages of 2012-13 by --corpus, instead of the paper's 200",
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 7.0,
            within: 3.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: slow_far,
            measure: load_saving,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "priorities",
        what: "priorities are of little help: load time that they save",
        conditions: PAGES,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 0.0,
            within: 3.0,
            neutral: None,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: priorities,
            measure: load_saving,
            factors: PUSH_FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "push",
        what: "pushes have potential: load time that pushes by dependency save",
        conditions: PAGES,
        unit: Unit::Percent,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 0.0,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: pushes_or_not,
            measure: load_saving,
            factors: PUSH_FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "push-by-dependency",
        what: "pushes by dependency do as well as pushing all: load to that",
        conditions: PAGES,
        unit: Unit::Ratio,
        expected: ClaimedResult::Number {
            value: 1.0,
            within: 0.03,
            neutral: None,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: pushes,
            measure: load_ratio,
            factors: PUSH_FACTORS,
        },
    },
    Claim {
        paper: Paper::Nsdi14,
        name: "push-data",
        what: "and push much less",
        conditions: "as before; the limit of a half is an assumption",
        unit: Unit::Percent,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Below,
            bound: -50.0,
        },
        test: Test::CannotRun("a load does not count pushed bytes separately"),
    },
];
