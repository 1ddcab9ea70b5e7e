//! The measurements of the University of New Mexico: a page of their own and one foreign image, SPDY against HTTPS.

use spdy_net::tls::TlsVersion;
use spdy_netem::profile::Era;

use crate::claims::bench::{Bench, Setting, Subjects, change};
use crate::claims::claim::{Claim, Expected, Measured, Paper, Side, Test, Unit};
use crate::claims::factor::Factor;
use crate::claims::pages::Objects;
use crate::options::{Options, RaceProtocol};

const STAND_IN: &str = "both in TLS, two hosts; their page and link are not told: 60 objects, 9.3 MB (their packets times \
                        bytes), 10 Mbit/s and 50 ms are ours";

fn page() -> Vec<spdy_page::replica::Replica> {
    let page = Objects {
        hosts: 2,
        ..Objects::new(60, 155_000)
    };
    vec![page.page()]
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

fn connections(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    bench.one(pages, setting, |pairs| {
        pairs.iter().map(|it| it.other.connections).sum::<f64>() / pairs.len() as f64
    })
}

fn connections_saved(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
) -> Result<Measured, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.connections))
}

fn bytes(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.bytes))
}

fn packets(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    bench.one(pages, setting, |pairs| change(pairs, |it| it.packets))
}

const FACTORS: &[Factor] = &[
    Factor::connections::<2>("two connections a host"),
    Factor::connections::<3>("three connections a host"),
    Factor::initial_window::<3>("initial window 3"),
    Factor {
        name: "100 Mbit/s",
        change: |setting| {
            setting.profile.path.down_bps = 100_000_000;
            setting.profile.path.up_bps = 100_000_000;
        },
    },
];

pub(crate) const CLAIMS: &[Claim] = &[
    Claim {
        paper: Paper::Unm,
        name: "connections",
        what: "connections of SPDY to a page on two addresses, in a virtual laboratory",
        conditions: STAND_IN,
        unit: Unit::Connections,
        expected: Expected::Number {
            value: 2.0,
            within: 0.0,
            neutral: None,
        },
        test: Test::Run {
            pages: Subjects::Pages(page),
            setting,
            measure: connections,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "fewer-connections",
        what: "connections of SPDY against those of HTTPS, in a virtual laboratory: 2 and 6.8",
        conditions: STAND_IN,
        unit: Unit::Percent,
        expected: Expected::Number {
            value: -70.6,
            within: 5.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(page),
            setting,
            measure: connections_saved,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Unm,
        name: "bytes",
        what: "bytes of SPDY against those of HTTPS, at Amazon EC2",
        conditions: STAND_IN,
        unit: Unit::Percent,
        expected: Expected::Number {
            value: 0.6,
            within: 2.0,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(page),
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
        expected: Expected::Beyond {
            side: Side::Above,
            bound: 0.0,
        },
        test: Test::Run {
            pages: Subjects::Pages(page),
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
        expected: Expected::Number {
            value: -21.3,
            within: 5.0,
            neutral: Some(0.0),
        },
        test: Test::CannotRun("neither the page nor the link is told, and the size hangs on both"),
    },
    Claim {
        paper: Paper::Unm,
        name: "time-amazon",
        what: "load of amazon.com with a cold cache, SPDY against HTTP",
        conditions: "the live site, another browser for each protocol",
        unit: Unit::Percent,
        expected: Expected::Number {
            value: -55.1,
            within: 5.0,
            neutral: Some(0.0),
        },
        test: Test::CannotRun("the site of 2013 is gone, and two browsers are two variables"),
    },
];
