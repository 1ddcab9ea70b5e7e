//! Lulic 2013: a page of 196 flags, and copies of three pages of the time, through a dummynet gateway.

use std::ops::RangeInclusive;

use crate::claims::bench::{Bench, Figures, Pair, Setting, Subjects, geometric_mean, profile};
use crate::claims::claim::{Claim, Expected, Measured, Paper, Side, Test, Unit};
use crate::claims::factor::Factor;
use crate::lulic::{BROWSER_MS, flags};
use crate::lulic_pages;
use crate::options::{Options, RaceProtocol};
use crate::stats::Line;

const BANDWIDTHS: [u32; 7] = [100, 256, 512, 1024, 2560, 5120, 10_240];
const DELAYS: [u32; 6] = [10, 50, 100, 200, 250, 500];

const GRID: &str = "7 bandwidths, 6 delays; 7 runs are one here, without chance; 38 streams, 590 B an image and 305 ms for the \
                    browser are fitted to his data";
const STAND_IN: &str = "7 bandwidths, 6 delays; his copy of the page is gone: ours has HTTP's bytes and round trips, and its \
                        structure is made up";
const SLOPE: &str =
    "10,240 kbit/s, delays 50 to 250 ms: load over the true round trip, four delays";

const FACTORS: &[Factor] = &[
    Factor {
        name: "100 streams, as mod_spdy would have allowed",
        change: |setting| setting.both(|options| options.max_concurrent_streams = 100),
    },
    Factor::initial_window::<3>("initial window 3"),
    Factor {
        name: "TLS 1.3",
        change: |setting| setting.both(|options| options.tls = spdy_net::tls::TlsVersion::Tls13),
    },
    Factor {
        name: "SPDY without TLS",
        change: |setting| setting.other.protocol = RaceProtocol::SpdyPlain,
    },
    Factor {
        name: "headers not compressed",
        change: |setting| {
            setting.both(|options| {
                options.spdy_compression = spdy_frame::compress::Compression::Zlib(0);
            });
        },
    },
    Factor::connections::<2>("two connections a host"),
];

fn against_http() -> Setting {
    setting(RaceProtocol::Http)
}

fn against_https() -> Setting {
    setting(RaceProtocol::Https)
}

/// SPDY against `base`; cells take its network from the grid.
fn setting(base: RaceProtocol) -> Setting {
    let protocols = (base, RaceProtocol::Spdy);
    Setting::new("lulic:1024kbit:50ms", protocols, &Options::lulic())
}

fn flags_against_http() -> Setting {
    Setting {
        browser_ms: BROWSER_MS,
        ..against_http()
    }
}

fn flags_against_https() -> Setting {
    Setting {
        browser_ms: BROWSER_MS,
        ..against_https()
    }
}

fn bing() -> Vec<spdy_page::replica::Replica> {
    lulic_pages::page("lulic-bing").into_iter().collect()
}

fn yahoo() -> Vec<spdy_page::replica::Replica> {
    lulic_pages::page("lulic-yahoo").into_iter().collect()
}

fn amazon() -> Vec<spdy_page::replica::Replica> {
    lulic_pages::page("lulic-amazon").into_iter().collect()
}

/// `setting` in one of his cells.
fn cell(setting: &Setting, bandwidth: u32, delay: u32) -> Setting {
    Setting {
        profile: profile(&format!("lulic:{bandwidth}kbit:{delay}ms")),
        ..setting.clone()
    }
}

/// Geometric mean of the ratios of all 42 cells.
fn grid(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    cells(bench, pages, setting, geometric_mean)
}

/// Cells in which the other way is the faster, percent.
fn wins(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    cells(bench, pages, setting, |pairs| {
        let won = pairs.iter().filter(|it| it.other.load_ms < it.base.load_ms);
        100.0 * won.count() as f64 / pairs.len() as f64
    })
}

fn cells(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
    statistic: fn(&[Pair]) -> f64,
) -> Result<Measured, String> {
    let cells = BANDWIDTHS.iter().flat_map(|&bandwidth| {
        DELAYS
            .iter()
            .map(move |&delay| cell(setting, bandwidth, delay))
    });
    let cells: Vec<Setting> = cells.collect();
    bench.pairs(pages, &cells)?.over_rows(statistic)
}

/// Slope of load over the true round trip.
fn round_trips(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
    of: fn(&Pair) -> &Figures,
) -> Result<Measured, String> {
    const LABELS: RangeInclusive<u32> = 50..=250;
    let labels: Vec<u32> = DELAYS
        .into_iter()
        .filter(|it| LABELS.contains(it))
        .collect();
    let cells: Vec<_> = labels
        .iter()
        .map(|&delay| cell(setting, 10_240, delay))
        .collect();
    let paired = bench.pairs(pages, &cells)?;
    let points = labels.iter().zip(&paired.rows).filter_map(|(&label, row)| {
        row.first()
            .map(|pair| (f64::from(label) * 4.0, of(pair).load_ms))
    });
    let line = Line::fit(&points.collect::<Vec<_>>()).ok_or("too few loads came whole")?;
    Ok(paired.exactly(line.slope))
}

fn trips_of_base(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
) -> Result<Measured, String> {
    round_trips(bench, pages, setting, |pair| &pair.base)
}

fn trips_of_other(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
) -> Result<Measured, String> {
    round_trips(bench, pages, setting, |pair| &pair.other)
}

/// Load over HTTP at the widest pipe to that at a quarter of it, at the longest delay.
fn knee(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    let cells = [2560, 10_240].map(|bandwidth| cell(setting, bandwidth, 500));
    let paired = bench.pairs(pages, &cells)?;
    let [Some(narrow), Some(wide)] = [0, 1].map(|row: usize| paired.rows[row].first()) else {
        return Err("a load did not come whole".to_owned());
    };
    Ok(paired.exactly(wide.base.load_ms / narrow.base.load_ms))
}

pub(crate) const CLAIMS: &[Claim] = &[
    Claim {
        paper: Paper::Lulic,
        name: "flags-http",
        what: "load of 196 small images, SPDY to HTTP (geometric mean of cells)",
        conditions: GRID,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value: 0.41,
            within: 0.05,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![flags()]),
            setting: flags_against_http,
            measure: grid,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "flags-https",
        what: "load of 196 small images, SPDY to HTTPS (geometric mean of cells)",
        conditions: GRID,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value: 0.37,
            within: 0.05,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![flags()]),
            setting: flags_against_https,
            measure: grid,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "flags-wins",
        what: "cells in which SPDY loads the flags faster than HTTP",
        conditions: GRID,
        unit: Unit::Percent,
        expected: Expected::Number {
            value: 100.0,
            within: 0.1,
            neutral: Some(50.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![flags()]),
            setting: flags_against_http,
            measure: wins,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "trips-http",
        what: "round trips of the flags over HTTP",
        conditions: SLOPE,
        unit: Unit::RoundTrips,
        expected: Expected::Number {
            value: 36.2,
            within: 1.0,
            neutral: None,
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![flags()]),
            setting: against_http,
            measure: trips_of_base,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "trips-https",
        what: "round trips of the flags over HTTPS",
        conditions: SLOPE,
        unit: Unit::RoundTrips,
        expected: Expected::Number {
            value: 38.6,
            within: 1.0,
            neutral: None,
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![flags()]),
            setting: against_https,
            measure: trips_of_base,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "trips-spdy",
        what: "round trips of the flags over SPDY",
        conditions: "as before; that 38 streams are open at once is fitted to this very figure and its cells",
        unit: Unit::RoundTrips,
        expected: Expected::Number {
            value: 12.0,
            within: 1.0,
            neutral: None,
        },
        test: Test::Run {
            pages: Subjects::Pages(|| vec![flags()]),
            setting: against_http,
            measure: trips_of_other,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "bing",
        what: "load of a small page, SPDY to HTTP",
        conditions: STAND_IN,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value: 1.14,
            within: 0.05,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(bing),
            setting: against_http,
            measure: grid,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "yahoo",
        what: "load of a page of medium size, SPDY to HTTP",
        conditions: STAND_IN,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value: 1.05,
            within: 0.05,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(yahoo),
            setting: against_http,
            measure: grid,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "amazon",
        what: "load of a large page, SPDY to HTTP",
        conditions: STAND_IN,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value: 1.05,
            within: 0.05,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(amazon),
            setting: against_http,
            measure: grid,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "bing-https",
        what: "load of a small page, SPDY to HTTPS",
        conditions: STAND_IN,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value: 0.84,
            within: 0.05,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(bing),
            setting: against_https,
            measure: grid,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "amazon-https",
        what: "load of a large page, SPDY to HTTPS",
        conditions: STAND_IN,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value: 0.99,
            within: 0.05,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(amazon),
            setting: against_https,
            measure: grid,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "knee",
        what: "load time flattens: HTTP at 10,240 kbit/s to that at 2,560",
        conditions: "delay 500 ms; the stand-in for Yahoo's login; that a tenth faster counts as flat is ours",
        unit: Unit::Ratio,
        expected: Expected::Beyond {
            side: Side::Above,
            bound: 0.9,
        },
        test: Test::Run {
            pages: Subjects::Pages(yahoo),
            setting: against_http,
            measure: knee,
            factors: &[],
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "real-web",
        what: "SPDY is best on about half of ten sites",
        conditions: "the web of 2013",
        unit: Unit::Percent,
        expected: Expected::Number {
            value: 50.0,
            within: 10.0,
            neutral: None,
        },
        test: Test::CannotRun("the sites of 2013 are gone"),
    },
];
