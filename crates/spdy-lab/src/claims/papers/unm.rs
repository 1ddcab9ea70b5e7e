//! The measurements of the University of New Mexico: their own page with one foreign image, SPDY against HTTPS; and amazon.com of
//! that time.

use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;
use spdy_netem::wire::LinkRate;
use spdy_sim::options::{Cache, Deployment, Options, RaceProtocol};

use crate::claims::claim::{BoundSide, Claim, ClaimedResult, Paper, Test, Trend};
use crate::claims::factor::ClaimFactor;
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting};
use crate::claims::statistics::{change, saving};
use crate::pages::described::page_of;

const PAGE: &str = "both in TLS; their page by its HTML, six images of its own and one of Google's, 9.3 MB as they counted; the size of \
                    each (all but one are small), 10 Mbit/s and 50 ms are assumptions";
const LIVE: &str = "the live site, another browser for each protocol; here: pages of 2012-13 by --corpus, 5 Mbit/s cable, 28 ms, no \
                    loss, SPDY in TLS 1.2, TCP of 2013";

/// Their page, by its HTML in the appendix: logos and portraits, and the large picture of its "Load Test". The foreign image is
/// Google's.
fn page() -> Vec<spdy_page::replica::Replica> {
    const OWN: [usize; 6] = [20_000, 40_000, 40_000, 40_000, 9_120_000, 20_000];
    const GOOGLES: usize = 14_000;
    let images: Vec<_> = OWN
        .map(|bytes| (0, bytes))
        .into_iter()
        .chain([(1, GOOGLES)])
        .collect();
    vec![page_of(&images, 0, 4_000)]
}

fn setting() -> Setting {
    let options = Options {
        tls: TlsVersion::Tls12,
        tcp_era: Some(Era::Y2013),
        ..Options::default()
    };
    let protocols = (RaceProtocol::Https, RaceProtocol::Spdy);
    Setting::new("down=10mbit,up=10mbit,rtt=50ms", protocols, &options)
}

fn connections(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| {
        pairs.iter().map(|it| it.other.connections).sum::<f64>() / pairs.len() as f64
    })
}

fn connections_of_base(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| {
        pairs.iter().map(|it| it.base.connections).sum::<f64>() / pairs.len() as f64
    })
}

/// HTTP against SPDY over a cable.
fn live() -> Setting {
    let options = Options {
        tls: TlsVersion::Tls12,
        tcp_era: Some(Era::Y2013),
        ..Options::default()
    };
    Setting::new("cable", (RaceProtocol::Http, RaceProtocol::Spdy), &options)
}

/// The saving with an empty cache, and at a second view.
fn by_cache(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let (names, settings) = setting.levels(
        &[("cold", Cache::Cold), ("warm", WARM)],
        |(name, _)| name.to_owned(),
        |it, (_, cache)| it.both(|options| options.cache = cache),
    );
    let paired = bench.load_pairs(pages, &settings)?;
    paired.measured(names, |pairs| saving(pairs, |it| it.load_ms))
}

/// The second view, directly after the first.
const WARM: Cache = Cache::Warm {
    after: std::time::Duration::ZERO,
};

const LIVE_FACTORS: &[ClaimFactor] = &[
    ClaimFactor {
        name: "HTTPS instead of HTTP",
        change: |setting| setting.base.protocol = RaceProtocol::Https,
    },
    ClaimFactor {
        name: "SPDY on the page's own hosts only",
        change: |setting| setting.other.options.deployment = Deployment::FirstParty,
    },
    ClaimFactor {
        name: "200 ms",
        change: |setting| setting.profile.path.rtt = std::time::Duration::from_millis(200),
    },
];

fn connections_saved(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.connections))
}

fn bytes(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.bytes))
}

fn packets(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.packets))
}

const FACTORS: &[ClaimFactor] = &[
    ClaimFactor::connections::<2>("two connections a host"),
    ClaimFactor::connections::<3>("three connections a host"),
    ClaimFactor::initial_window::<3>("initial window 3"),
    ClaimFactor {
        name: "100 Mbit/s",
        change: |setting| {
            setting.profile.path.down = LinkRate::Bps(100_000_000);
            setting.profile.path.up = LinkRate::Bps(100_000_000);
        },
    },
];

pub(crate) const CLAIMS: &[Claim] = &[
    Claim {
        paper: Paper::Unm,
        name: "connections",
        what: "connections of SPDY to a page on two addresses, in a virtual laboratory",
        conditions: PAGE,
        unit: Unit::Connections,
        expected: ClaimedResult::Number {
            value: 2.0,
            within: 0.0,
            neutral: None,
        },
        test: Test::Run {
            pages: PageSet::Pages(page),
            setting,
            measure: connections,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "fewer-connections",
        what: "connections of SPDY against those of HTTPS, in a virtual laboratory: 2 and 6.8",
        conditions: PAGE,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: -70.6,
            within: 5.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: PageSet::Pages(page),
            setting,
            measure: connections_saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "https-connections",
        what: "connections of HTTPS, in a virtual laboratory",
        conditions: PAGE,
        unit: Unit::Connections,
        expected: ClaimedResult::Number {
            value: 6.8,
            within: 0.5,
            neutral: None,
        },
        test: Test::Run {
            pages: PageSet::Pages(page),
            setting,
            measure: connections_of_base,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "ec2-connections",
        what: "connections of SPDY against those of HTTPS, at Amazon EC2: 4.15 and 9.7",
        conditions: PAGE,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: -57.2,
            within: 5.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: PageSet::Pages(page),
            setting,
            measure: connections_saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "bytes",
        what: "bytes of SPDY against those of HTTPS, at Amazon EC2",
        conditions: PAGE,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 0.6,
            within: 2.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: PageSet::Pages(page),
            setting,
            measure: bytes,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "packets",
        what: "packets of SPDY against those of HTTPS, in a virtual laboratory: 2226 and 1255",
        conditions: "as before; 7.4 kB a packet: their capture was taken before segments were cut",
        unit: Unit::Percent,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 0.0,
        },
        test: Test::Run {
            pages: PageSet::Pages(page),
            setting,
            measure: packets,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "time-ec2",
        what: "download time of SPDY against HTTPS, at Amazon EC2",
        conditions: "20 runs, one page and one foreign image",
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: -21.3,
            within: 5.0,
            neutral: Some(0.0),
        },
        test: Test::CannotRun(
            "the paper states neither the page nor the link, and the size depends on both",
        ),
    },
    Claim {
        paper: Paper::Unm,
        name: "warm-cache",
        what: "load time of amazon.com that SPDY saves with a cold cache and with a warm one: the cache removes the gain",
        conditions: LIVE,
        unit: Unit::Percent,
        expected: ClaimedResult::Series {
            values: &[55.1, -39.7],
            within: 5.0,
            trend: Trend::Falling,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: live,
            measure: by_cache,
            factors: LIVE_FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "live-connections",
        what: "SPDY opens more connections to amazon.com than HTTP, 44.5 and 41.3",
        conditions: LIVE,
        unit: Unit::Percent,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 0.0,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: live,
            measure: connections_saved,
            factors: LIVE_FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "time-amazon",
        what: "load of amazon.com with a cold cache, SPDY against HTTP",
        conditions: "the live site, another browser for each protocol",
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: -55.1,
            within: 5.0,
            neutral: Some(0.0),
        },
        test: Test::CannotRun(
            "the site of 2013 no longer exists, and two browsers are two variables",
        ),
    },
];
