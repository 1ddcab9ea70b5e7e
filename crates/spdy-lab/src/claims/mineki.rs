//! Mineki, Uemura and Hasegawa 2013: an accelerator that puts a page of many hosts onto one SPDY session.

use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;
use spdy_page::replica::Replica;

use crate::claims::bench::{Bench, Pages, Pair, Paired, Setting, Subjects, profile, ratio_by_page};
use crate::claims::claim::{Claim, Expected, Measured, Paper, Side, Test, Unit};
use crate::claims::factor::Factor;
use crate::claims::pages::Objects;
use crate::options::{Options, RaceProtocol};

const DOWN_KBIT: [u32; 6] = [128, 256, 512, 1024, 2048, 4096];

/// 42 images on so many hosts, a style sheet and a document, 320 kB.
fn page_on(hosts: usize) -> Replica {
    Objects {
        hosts,
        sheet: 20_000,
        document: 15_000,
        ..Objects::new(42, 6_785)
    }
    .page()
}

/// His machines: CentOS 5.8 with Linux 2.6.18, Apache 2.2.
fn options() -> Options {
    Options {
        tls: TlsVersion::Tls12,
        tcp_era: Some(Era::Y2009),
        ..Options::default()
    }
}

fn folding() -> Setting {
    let mut setting = Setting::new(
        "mineki:1024kbit",
        (RaceProtocol::Spdy, RaceProtocol::Spdy),
        &options(),
    );
    setting.other.folded = true;
    setting
}

/// What folding saves at each rate, percent.
fn savings(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Paired, String> {
    let settings = DOWN_KBIT.map(|down| {
        let mut setting = setting.clone();
        setting.profile.path.down_bps = u64::from(down) * 1_000;
        setting
    });
    bench.pairs(pages, &settings)
}

fn saved_of(pair: &Pair) -> f64 {
    100.0 * (1.0 - pair.other.load_ms / pair.base.load_ms)
}

/// The mean over all rates; its interval is of the rates that were drawn.
fn saved(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    savings(bench, pages, setting)?
        .over_rows(|pairs| pairs.iter().map(saved_of).sum::<f64>() / pairs.len() as f64)
}

/// The least of all rates.
fn least_saved(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    let paired = savings(bench, pages, setting)?;
    let least = paired.rows.iter().flatten().map(saved_of).reduce(f64::min);
    Ok(paired.exactly(least.ok_or("no load came whole")?))
}

/// Load over HTTP with the images on 1 to 7 hosts, to that on one.
fn sharded(bench: &Bench<'_>, _: &Subjects, setting: &Setting) -> Result<Measured, String> {
    const PAGES: [(&str, Pages); 5] = [
        ("1 host", || vec![page_on(1)]),
        ("2 hosts", || vec![page_on(2)]),
        ("3 hosts", || vec![page_on(3)]),
        ("4 hosts", || vec![page_on(4)]),
        ("7 hosts", || vec![page_on(7)]),
    ];
    ratio_by_page(bench, &PAGES, setting)
}

/// HTTP on as many hosts as the page has, against all of it on one.
fn sharding() -> Setting {
    let mut setting = Setting::new(
        "mineki:1024kbit",
        (RaceProtocol::Http, RaceProtocol::Http),
        &options(),
    );
    setting.base.folded = true;
    setting
}

const FACTORS: &[Factor] = &[
    Factor::NAMES_KNOWN,
    Factor {
        name: "TLS 1.3",
        change: |setting| setting.both(|options| options.tls = TlsVersion::Tls13),
    },
    Factor::tcp_today("TCP of today"),
    Factor {
        name: "no TLS",
        change: |setting| {
            setting.base.protocol = RaceProtocol::SpdyPlain;
            setting.other.protocol = RaceProtocol::SpdyPlain;
        },
    },
    Factor {
        name: "HTTPS instead of SPDY without the accelerator",
        change: |setting| setting.base.protocol = RaceProtocol::Https,
    },
    Factor {
        name: "round trip of 450 ms",
        change: |setting| setting.profile.path.rtt *= 3,
    },
];

const SHARDING_FACTORS: &[Factor] = &[
    Factor::connections::<2>("two connections a host"),
    Factor {
        name: "4096 kbit/s",
        change: |setting| setting.profile = profile("mineki:4096kbit"),
    },
    Factor::NAMES_KNOWN,
];

pub(crate) const CLAIMS: &[Claim] = &[
    Claim {
        paper: Paper::Mineki,
        name: "accelerator",
        what: "load time that one session for all hosts saves against SPDY to each, mean over rates",
        conditions: "42 images on 7 hosts, a sheet and a document, 320 kB; 1024 kbit/s up, 128 to 4096 down, 150 ms; TLS 1.2, \
                     TCP of 2009, a resolver across the link are ours",
        unit: Unit::Percent,
        expected: Expected::Number {
            value: 33.3,
            within: 6.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![page_on(7)]),
            setting: folding,
            measure: saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Mineki,
        name: "every-rate",
        what: "it saves at every rate: the least of what it saves at 128, 256, 512, 1024, 2048 and 4096 kbit/s",
        conditions: "as before; the paper draws it and gives no numbers",
        unit: Unit::Percent,
        expected: Expected::Beyond {
            side: Side::Above,
            bound: 0.0,
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![page_on(7)]),
            setting: folding,
            measure: least_saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Mineki,
        name: "two-domains",
        what: "two hosts are best for sharding, as it cites (load over HTTP to that on one host, for 1, 2, 3, 4 and 7)",
        conditions: "the same page over HTTP, 6 connections a host (ours), 1024 kbit/s down, 150 ms",
        unit: Unit::Ratio,
        expected: Expected::Least { level: "2 hosts" },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![page_on(7)]),
            setting: sharding,
            measure: sharded,
            factors: SHARDING_FACTORS,
        },
    },
];
