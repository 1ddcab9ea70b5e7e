//! Belshe and Peon's slides of 2009, and Belshe's blog: packets, headers, loss, and the web's top 300.

use std::time::Duration;

use bytes::BytesMut;
use spdy_frame::compress::Compression;
use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;
use spdy_netem::wire::LinkRate;
use spdy_sim::options::{Deployment, Options, RaceProtocol};

use crate::claims::claim::{BoundSide, Claim, ClaimedResult, MeasureFn, Paper, Test};
use crate::claims::factor::ClaimFactor;
use crate::claims::header_saving;
use crate::claims::measured::{MeasuredResult, Point, Unit};
use crate::claims::papers::whitepaper::{self, plain, saved};
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting, profile};
use crate::claims::statistics::{change, ratio};
use crate::stats::Estimate;

const DSL: &str = "the top 25 sites, 2 Mbit/s DSL, no loss; here: pages of 2012-13 by --corpus, 375 kbit/s up, 60 ms, TCP of 2009, \
                   initial window 3, each host its session, no TLS";
const HEADERS: &str = "the paper does not state which heads; here: those of 2012-13 by --corpus, a zlib stream for each host and recording";

fn dsl() -> Setting {
    plain("whitepaper-dsl")
}

fn packets(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.packets))
}

fn bytes(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.bytes))
}

fn packet_size(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| {
        let size = ratio(pairs, |it| it.bytes) / ratio(pairs, |it| it.packets);
        100.0 * (size - 1.0)
    })
}

/// SPDY with uncompressed headers against SPDY with compressed headers.
fn compression() -> Setting {
    let mut setting = plain("whitepaper-dsl");
    setting.base.protocol = RaceProtocol::SpdyPlain;
    setting.base.options.spdy_compression = Compression::Zlib(0);
    setting
}

/// Milliseconds by which the other side is faster, mean over pages.
fn milliseconds(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| {
        let saved = pairs
            .iter()
            .map(|pair| pair.base.load_ms - pair.other.load_ms);
        saved.sum::<f64>() / pairs.len() as f64
    })
}

/// Overhead of DATA frame heads for a body in frames of 4 kB, percent: encoded and counted.
fn framing(_: &ClaimRunner<'_>, _: &PageSet, _: &Setting) -> Result<MeasuredResult, String> {
    const FRAME: usize = 4096;
    let data = spdy_frame::data::Data {
        stream_id: spdy_frame::stream_id::StreamId::new(1),
        fin: false,
        payload: vec![0; FRAME].into(),
    };
    let mut out = BytesMut::new();
    data.encode(&mut out);
    let value = 100.0 * (out.len() - FRAME) as f64 / FRAME as f64;
    let estimate = Estimate::exact(value);
    let level = String::new();
    Ok(MeasuredResult {
        points: vec![Point { level, estimate }],
        rise: None,
        loads: 0,
        left_out: 0,
    })
}

fn cable() -> Setting {
    let mut setting = plain("whitepaper-cable,loss=1.5%");
    setting.other.folded = true;
    setting
}

pub(crate) fn top_300() -> Setting {
    plain("belshe-2011")
}

/// Share of the pages that save 5 to 20 % of their load time, percent.
fn share_of_most(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| {
        let saved = pairs
            .iter()
            .map(|pair| 1.0 - pair.other.load_ms / pair.base.load_ms);
        let within = saved.filter(|saved| (0.05..=0.2).contains(saved)).count();
        100.0 * within as f64 / pairs.len() as f64
    })
}

fn zlib() -> Setting {
    let protocols = (RaceProtocol::Http, RaceProtocol::SpdyPlain);
    let options = Options {
        spdy_compression: Compression::Zlib(9),
        ..Options::default()
    };
    Setting::new("whitepaper-dsl", protocols, &options)
}

const HEADER_FACTORS: &[ClaimFactor] = &[
    ClaimFactor {
        name: "secrets masked because of CRIME",
        change: |setting| setting.other.options.spdy_compression = Compression::CrimeSafe,
    },
    ClaimFactor {
        name: "zlib level 1",
        change: |setting| setting.other.options.spdy_compression = Compression::Zlib(1),
    },
];

const UPLINK_FACTORS: &[ClaimFactor] = &[
    ClaimFactor::initial_window::<10>("initial window 10"),
    ClaimFactor {
        name: "128 kbit/s up",
        change: |setting| setting.profile.path.up = LinkRate::Bps(128_000),
    },
    ClaimFactor {
        name: "everything on one host",
        change: |setting| {
            setting.base.folded = true;
            setting.other.folded = true;
        },
    },
];

/// HTTPS against SPDY, if only the page's own site speaks SPDY.
fn first_party() -> Setting {
    let options = Options {
        tls: TlsVersion::Tls12,
        tcp_era: Some(Era::Y2013),
        spdy_compression: Compression::Zlib(9),
        ..Options::default()
    };
    let protocols = (RaceProtocol::Https, RaceProtocol::Spdy);
    let mut setting = Setting::new("cable", protocols, &options);
    setting.other.options.deployment = Deployment::FirstParty;
    setting
}

/// The same against HTTP.
fn first_party_http() -> Setting {
    let mut setting = first_party();
    setting.base.protocol = RaceProtocol::Http;
    setting
}

const FIRST_PARTY_FACTORS: &[ClaimFactor] = &[
    ClaimFactor {
        name: "SPDY on every host",
        change: |setting| setting.other.options.deployment = Deployment::All,
    },
    ClaimFactor {
        name: "HTTP without TLS instead of HTTPS",
        change: |setting| setting.base.protocol = RaceProtocol::Http,
    },
    ClaimFactor {
        name: "200 ms",
        change: |setting| setting.profile.path.rtt = Duration::from_millis(200),
    },
    ClaimFactor {
        name: "DSL, 1.5 Mbit/s down and 384 kbit/s up, 50 ms",
        change: |setting| setting.profile = profile("dsl"),
    },
    ClaimFactor::initial_window::<3>("initial window 3"),
    ClaimFactor::connections::<2>("two connections a host"),
    ClaimFactor::NAMES_RESOLVED,
];

const fn percent(
    name: &'static str,
    what: &'static str,
    (value, within): (f64, f64),
    conditions: &'static str,
    setting: fn() -> Setting,
    measure: MeasureFn,
    factors: &'static [ClaimFactor],
) -> Claim {
    Claim {
        paper: Paper::Belshe,
        name,
        what,
        conditions,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value,
            within,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting,
            measure,
            factors,
        },
    }
}

pub(crate) const CLAIMS: &[Claim] = &[
    percent(
        "packets",
        "packets against HTTP",
        (-40.0, 5.0),
        DSL,
        dsl,
        packets,
        whitepaper::FACTORS,
    ),
    percent(
        "packet-size",
        "bytes of an average packet against HTTP",
        (41.0, 5.0),
        DSL,
        dsl,
        packet_size,
        whitepaper::FACTORS,
    ),
    percent(
        "bytes",
        "bytes transferred against HTTP",
        (-15.0, 3.0),
        DSL,
        dsl,
        bytes,
        whitepaper::FACTORS,
    ),
    percent(
        "request-headers",
        "bytes of request heads saved by compression",
        (88.0, 2.0),
        HEADERS,
        zlib,
        header_saving::requests,
        HEADER_FACTORS,
    ),
    percent(
        "response-headers",
        "bytes of response heads saved by compression",
        (85.0, 2.0),
        HEADERS,
        zlib,
        header_saving::responses,
        HEADER_FACTORS,
    ),
    Claim {
        paper: Paper::Belshe,
        name: "header-time",
        what: "load time saved by header compression",
        conditions: "375 kbit/s up; the rest as for packets",
        unit: Unit::Milliseconds,
        expected: ClaimedResult::Between {
            low: 45.0,
            high: 1142.0,
            neutral: 0.0,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: compression,
            measure: milliseconds,
            factors: UPLINK_FACTORS,
        },
    },
    Claim {
        paper: Paper::Belshe,
        name: "framing",
        what: "bytes added by framing",
        conditions: "frames of 4 kB, heads of 8 bytes",
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 0.2,
            within: 0.05,
            neutral: None,
        },
        test: Test::Run {
            pages: PageSet::Pages(Vec::new),
            setting: zlib,
            measure: framing,
            factors: &[],
        },
    },
    percent(
        "loss",
        "load time saved between 1 and 2 % of loss (41 to 47)",
        (44.0, 3.0),
        "cable; here: 1.5 % in both directions, 60 ms, pages of 2012-13 by --corpus, SPDY on one host, TCP of 2009, initial window 3, \
         no TLS",
        cable,
        saved,
        whitepaper::FACTORS,
    ),
    percent(
        "top-300",
        "load time saved, mean of the top 300 sites",
        (40.0, 5.0),
        "2 Mbit/s down, 386 kbit/s up, 100 ms, no loss, no TLS; here: pages of 2012-13 by --corpus, TCP of 2009, initial \
         window 3, each host its session",
        top_300,
        saved,
        whitepaper::FACTORS,
    ),
    Claim {
        paper: Paper::Belshe,
        name: "most-sites",
        what: "most sites gain 5 to 20 %: pages that do",
        conditions: "as for the top 300",
        unit: Unit::Percent,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 50.0,
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: top_300,
            measure: share_of_most,
            factors: whitepaper::FACTORS,
        },
    },
    percent(
        "first-party",
        "load time saved against HTTPS with SPDY on the page's own hosts only (as found by other authors)",
        (4.5, 2.0),
        "500 sites of 2012; here: pages of 2012-13 by --corpus, 5 Mbit/s cable, 28 ms, no loss, TLS 1.2, TCP of 2013, six \
         connections a host",
        first_party,
        saved,
        FIRST_PARTY_FACTORS,
    ),
    percent(
        "first-party-http",
        "load time saved against HTTP with SPDY on the page's own hosts only (as found by other authors)",
        (-3.4, 2.0),
        "as for first-party; the page's other hosts use TLS too",
        first_party_http,
        saved,
        FIRST_PARTY_FACTORS,
    ),
    Claim {
        paper: Paper::Belshe,
        name: "deployment",
        what: "resources of cnn.com that travel over SPDY",
        conditions: "the live page of 2012",
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 46.5,
            within: 5.0,
            neutral: None,
        },
        test: Test::CannotRun("which hosts supported SPDY in 2012 is not recorded"),
    },
];
