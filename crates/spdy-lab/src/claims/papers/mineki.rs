//! Mineki, Uemura and Hasegawa 2013: an accelerator that puts a page of many hosts onto one SPDY session.
//!
//! The released `spdy-proxy` is tested, between the client and the seven hosts ([`accelerator`](spdy_sim::accelerator)).

use std::time::Duration;

use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;
use spdy_netem::queue::QueueConfig;
use spdy_netem::wire::LinkRate;
use spdy_page::replica::Replica;
use spdy_sim::options::{Accelerator, Options, Push, RaceProtocol};

use crate::claims::claim::{BoundSide, Claim, ClaimedResult, MeasureFn, Paper, Test};
use crate::claims::factor::ClaimFactor;
use crate::claims::measured::{MeasuredResult, Point, Unit};
use crate::claims::runner::{ClaimRunner, ratio_by_page};
use crate::claims::setting::{PageSet, Pages, Setting, profile};
use crate::claims::statistics::{FigurePair, PairedLoads};
use crate::pages::mineki::page_on;
use crate::stats::Bootstrap;

const DOWN_KBIT: [u32; 6] = [128, 256, 512, 1024, 2048, 4096];

/// The paper's machines: CentOS 5.8 with Linux 2.6.18, Apache 2.2.
fn options() -> Options {
    Options {
        tls: TlsVersion::Tls12,
        tcp_era: Some(Era::Y2009),
        ..Options::default()
    }
}

/// SPDY to every host, against SPDY to `accelerator`.
fn accelerated(accelerator: Accelerator) -> Setting {
    let mut setting = Setting::new(
        "mineki:1024kbit",
        (RaceProtocol::Spdy, RaceProtocol::Spdy),
        &options(),
    );
    setting.both(|options| options.backhaul = Duration::from_millis(20));
    setting.other.options.accelerator = accelerator;
    setting
}

/// The saving at each rate, percent.
fn savings(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<PairedLoads, String> {
    let settings = DOWN_KBIT.map(|down| {
        let mut setting = setting.clone();
        setting.profile.path.down = LinkRate::Bps(u64::from(down) * 1_000);
        setting
    });
    bench.load_pairs(pages, &settings)
}

fn saved_of(pair: &FigurePair) -> f64 {
    100.0 * (1.0 - pair.other.load_ms / pair.base.load_ms)
}

/// The mean over all rates, with an interval over the measured rates.
fn saved(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    savings(bench, pages, setting)?
        .over_rows(|pairs| pairs.iter().map(saved_of).sum::<f64>() / pairs.len() as f64)
}

/// The minimum over all rates.
fn least_saved(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let paired = savings(bench, pages, setting)?;
    let least = paired.rows.iter().flatten().map(saved_of).reduce(f64::min);
    Ok(paired.exactly(least.ok_or("no load is complete")?))
}

/// Load over HTTP with the images on 1 to 7 hosts, over that on one.
fn sharded(
    bench: &ClaimRunner<'_>,
    _: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    const PAGES: [(&str, Pages); 5] = [
        ("1 host", || vec![page_on(1)]),
        ("2 hosts", || vec![page_on(2)]),
        ("3 hosts", || vec![page_on(3)]),
        ("4 hosts", || vec![page_on(4)]),
        ("7 hosts", || vec![page_on(7)]),
    ];
    ratio_by_page(bench, &PAGES, setting)
}

/// HTTP on as many hosts as the page has, against one host.
fn sharding() -> Setting {
    let mut setting = Setting::new(
        "mineki:1024kbit",
        (RaceProtocol::Http, RaceProtocol::Http),
        &options(),
    );
    setting.base.folded = true;
    setting
}

const FACTORS: &[ClaimFactor] = &[
    ClaimFactor::NAMES_RESOLVED,
    ClaimFactor {
        name: "TLS 1.3",
        change: |setting| setting.both(|options| options.tls = TlsVersion::Tls13),
    },
    ClaimFactor::tcp_today("TCP of today"),
    ClaimFactor {
        name: "no TLS",
        change: |setting| {
            setting.base.protocol = RaceProtocol::SpdyPlain;
            setting.other.protocol = RaceProtocol::SpdyPlain;
        },
    },
    ClaimFactor {
        name: "HTTPS instead of SPDY without the accelerator",
        change: |setting| setting.base.protocol = RaceProtocol::Https,
    },
    ClaimFactor {
        name: "HTTP instead of SPDY without the accelerator",
        change: |setting| setting.base.protocol = RaceProtocol::Http,
    },
    ClaimFactor {
        name: "a queue of 1000 packets",
        change: |setting| setting.profile.path.queue = QueueConfig::DEFAULT,
    },
    ClaimFactor {
        name: "it pushes cached resources",
        change: |setting| setting.other.options.push = Push::ByGraph,
    },
    ClaimFactor {
        name: "it has just been started",
        change: |setting| setting.other.options.accelerator = Accelerator::Cold,
    },
    ClaimFactor {
        name: "no latency between it and the origins",
        change: |setting| setting.both(|options| options.backhaul = Duration::ZERO),
    },
    ClaimFactor {
        name: "150 ms between it and the origins",
        change: |setting| setting.both(|options| options.backhaul = Duration::from_millis(150)),
    },
    ClaimFactor {
        name: "round trip of 450 ms",
        change: |setting| setting.profile.path.rtt *= 3,
    },
];

const SHARDING_FACTORS: &[ClaimFactor] = &[
    ClaimFactor::connections::<2>("two connections a host"),
    ClaimFactor {
        name: "4096 kbit/s",
        change: |setting| setting.profile = profile("mineki:4096kbit"),
    },
    ClaimFactor::NAMES_RESOLVED,
];

const CONDITIONS: &str = "42 images on 7 hosts, a sheet and a document, 320 kB; 1024 kbit/s up, 128 to 4096 down, 150 ms; 20 ms \
                          between accelerator and origins, TLS 1.2, TCP of 2009, a resolver across the link are assumptions";

/// The mean of `of` over the pages of the corpus.
fn mean_page(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    of: fn(&Replica) -> f64,
) -> Result<MeasuredResult, String> {
    let figures: Vec<f64> = bench.pages(pages)?.iter().map(of).collect();
    let estimate = Bootstrap::default().of(&figures, |drawn| {
        drawn.iter().sum::<f64>() / drawn.len() as f64
    });
    let level = String::new();
    let estimate = estimate.ok_or("no pages")?;
    Ok(MeasuredResult {
        points: vec![Point { level, estimate }],
        rise: None,
        loads: 0,
        left_out: 0,
    })
}

fn resources(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    _: &Setting,
) -> Result<MeasuredResult, String> {
    mean_page(bench, pages, |page| page.exchanges.len() as f64)
}

fn names(bench: &ClaimRunner<'_>, pages: &PageSet, _: &Setting) -> Result<MeasuredResult, String> {
    mean_page(bench, pages, |page| page.hosts().len() as f64)
}

fn kilobytes(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    _: &Setting,
) -> Result<MeasuredResult, String> {
    mean_page(bench, pages, |page| {
        page.exchanges
            .iter()
            .map(|it| it.body.len() as f64)
            .sum::<f64>()
            / 1e3
    })
}

/// A property of an average page, counted on the corpus; tolerances are 25 %.
const fn average(
    name: &'static str,
    what: &'static str,
    unit: Unit,
    value: f64,
    measure: MeasureFn,
) -> Claim {
    Claim {
        paper: Paper::Mineki,
        name,
        what,
        conditions: "the web of 2010, as cited; here: pages of 2012-13 by --corpus, of which none has fewer than 20 resources or more \
                     than 4 MB",
        unit,
        expected: ClaimedResult::Number {
            value,
            within: value / 4.0,
            neutral: None,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: sharding,
            measure,
            factors: &[],
        },
    }
}

pub(crate) const CLAIMS: &[Claim] = &[
    average(
        "average-resources",
        "resources of the average page",
        Unit::Count,
        44.0,
        resources,
    ),
    average(
        "average-names",
        "host names of the average page",
        Unit::Count,
        7.0,
        names,
    ),
    average(
        "average-bytes",
        "bytes of the average page",
        Unit::Kilobytes,
        320.0,
        kilobytes,
    ),
    Claim {
        paper: Paper::Mineki,
        name: "accelerator",
        what: "load time that the accelerator saves against SPDY to each host with the page in its cache: mean over rates",
        conditions: CONDITIONS,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 33.3,
            within: 6.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![page_on(7)]),
            setting: || accelerated(Accelerator::Warm),
            measure: saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Mineki,
        name: "every-rate",
        what: "it saves at every rate: minimum of the savings at 128, 256, 512, 1024, 2048 and 4096 kbit/s",
        conditions: "as before; the paper draws it and gives no numbers",
        unit: Unit::Percent,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 0.0,
        },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![page_on(7)]),
            setting: || accelerated(Accelerator::Warm),
            measure: least_saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Mineki,
        name: "first-view",
        what: "it saves at every rate with an empty cache: minimum of the savings",
        conditions: "as before, the accelerator just started; the paper does not say whether its cache was filled",
        unit: Unit::Percent,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 0.0,
        },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![page_on(7)]),
            setting: || accelerated(Accelerator::Cold),
            measure: least_saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Mineki,
        name: "two-domains",
        what: "two hosts are best for sharding, as cited (load over HTTP to that on one host, for 1, 2, 3, 4 and 7)",
        conditions: "the same page over HTTP, 6 connections a host (assumed), 1024 kbit/s down, 150 ms",
        unit: Unit::Ratio,
        expected: ClaimedResult::Least { level: "2 hosts" },
        test: Test::Run {
            pages: PageSet::Pages(|| vec![page_on(7)]),
            setting: sharding,
            measure: sharded,
            factors: SHARDING_FACTORS,
        },
    },
];
