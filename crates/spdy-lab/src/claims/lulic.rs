//! Lulic 2013: a page of 196 flags, and copies of three pages of the time, through a dummynet gateway.

use std::ops::RangeInclusive;

use crate::claims::bench::{
    Bench, Figures, Pages, Pair, Setting, Subjects, geometric_mean, geometric_mean_of, profile,
};
use crate::claims::claim::{Claim, Expected, Measure, Measured, Paper, Side, Test, Trend, Unit};
use crate::claims::factor::Factor;
use crate::lulic::Parameters;
use crate::lulic_pages;
use crate::options::{Options, RaceProtocol};
use crate::stats::Line;

const BANDWIDTHS: [u32; 7] = [100, 256, 512, 1024, 2048, 5120, 10_240];
const DELAYS: [u32; 6] = [10, 50, 100, 200, 250, 500];

const GRID: &str = "7 bandwidths, 6 delays; 7 runs are one here, without chance; 46 streams, 640 B an image and 305 ms for the \
                    browser are fitted to his data";
const STAND_IN: &str = "7 bandwidths, 6 delays; his copy of the page is gone: ours has HTTP's bytes and round trips, and its \
                        structure is made up";
const SLOPE: &str =
    "10,240 kbit/s, delays 50 to 250 ms: load over the true round trip, four delays";

const WINS: &str = "as for its ratio; within a twentieth of the cells is ours";
const TREND: &str = "geometric means of the cells of the least and of the most, as for its ratio";

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
    Factor {
        name: "no priorities",
        change: |setting| setting.both(|options| options.priorities = false),
    },
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
        browser_ms: Parameters::FITTED.browser_ms,
        ..against_http()
    }
}

fn flags_against_https() -> Setting {
    Setting {
        browser_ms: Parameters::FITTED.browser_ms,
        ..against_https()
    }
}

/// HTTPS against HTTP.
fn https_against_http() -> Setting {
    let protocols = (RaceProtocol::Http, RaceProtocol::Https);
    Setting::new("lulic:1024kbit:50ms", protocols, &Options::lulic())
}

fn flags_https_against_http() -> Setting {
    Setting {
        browser_ms: Parameters::FITTED.browser_ms,
        ..https_against_http()
    }
}

fn fitted_flags() -> Vec<spdy_page::replica::Replica> {
    vec![Parameters::FITTED.page()]
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

/// Bandwidths and delays of all cells.
fn labels() -> impl Iterator<Item = (u32, u32)> {
    let delays = |bandwidth| DELAYS.into_iter().map(move |delay| (bandwidth, delay));
    BANDWIDTHS.into_iter().flat_map(delays)
}

fn cells(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
    statistic: fn(&[Pair]) -> f64,
) -> Result<Measured, String> {
    let cells = labels().map(|(bandwidth, delay)| cell(setting, bandwidth, delay));
    let cells: Vec<Setting> = cells.collect();
    bench.pairs(pages, &cells)?.over_rows(statistic)
}

/// The ratio in the cells that `is_low` picks, and in those that `is_high` does.
fn two_ends(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
    (low, is_low): (&str, fn(u32, u32) -> bool),
    (high, is_high): (&str, fn(u32, u32) -> bool),
) -> Result<Measured, String> {
    let labels: Vec<_> = labels()
        .filter(|&(bandwidth, delay)| is_low(bandwidth, delay) || is_high(bandwidth, delay))
        .collect();
    let cells = labels
        .iter()
        .map(|&(bandwidth, delay)| cell(setting, bandwidth, delay));
    let paired = bench.pairs(pages, &cells.collect::<Vec<_>>())?;
    let group = |is_in: fn(u32, u32) -> bool| -> Vec<usize> {
        let all = labels.iter().enumerate();
        let those = all.filter(|&(_, &(bandwidth, delay))| is_in(bandwidth, delay));
        those.map(|(row, _)| row).collect()
    };
    let groups = [(low, &group(is_low)[..]), (high, &group(is_high)[..])];
    paired.of_groups(groups, geometric_mean)
}

/// The ratio up to 512 kbit/s, and from 5,120 up.
fn by_bandwidth(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
) -> Result<Measured, String> {
    let low = (
        "to 512 kbit/s",
        (|bandwidth, _| bandwidth <= 512) as fn(u32, u32) -> bool,
    );
    let high = (
        "from 5,120 kbit/s",
        (|bandwidth, _| bandwidth >= 5_120) as fn(u32, u32) -> bool,
    );
    two_ends(bench, pages, setting, low, high)
}

/// The ratio up to a delay of 50 ms, and from 250 up.
fn by_delay(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    let low = ("to 50 ms", (|_, delay| delay <= 50) as fn(u32, u32) -> bool);
    let high = (
        "from 250 ms",
        (|_, delay| delay >= 250) as fn(u32, u32) -> bool,
    );
    two_ends(bench, pages, setting, low, high)
}

/// Geometric mean of the ratios of DOMContentLoaded of all cells.
fn grid_of_dom_content_loaded(
    bench: &Bench<'_>,
    pages: &Subjects,
    setting: &Setting,
) -> Result<Measured, String> {
    cells(bench, pages, setting, |pairs| {
        geometric_mean_of(pairs, |it| it.dom_content_loaded_ms)
    })
}

/// A claim of a ratio over the grid.
const fn ratio(
    (name, what): (&'static str, &'static str),
    (value, within): (f64, f64),
    conditions: &'static str,
    pages: Pages,
    setting: fn() -> Setting,
    measure: Measure,
) -> Claim {
    Claim {
        paper: Paper::Lulic,
        name,
        what,
        conditions,
        unit: Unit::Ratio,
        expected: Expected::Number {
            value,
            within,
            neutral: Some(1.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(pages),
            setting,
            measure,
            factors: FACTORS,
        },
    }
}

/// A claim of how many of the 42 cells SPDY wins.
const fn won(
    (name, what): (&'static str, &'static str),
    cells: u32,
    pages: Pages,
    setting: fn() -> Setting,
) -> Claim {
    Claim {
        paper: Paper::Lulic,
        name,
        what,
        conditions: WINS,
        unit: Unit::Percent,
        expected: Expected::Number {
            value: 100.0 * cells as f64 / 42.0,
            within: 5.0,
            neutral: Some(50.0),
        },
        test: Test::Run {
            pages: Subjects::Pages(pages),
            setting,
            measure: wins,
            factors: &[],
        },
    }
}

/// A claim of where the ratio goes.
const fn trend(
    (name, what): (&'static str, &'static str),
    values: &'static [f64],
    trend: Trend,
    pages: Pages,
    (setting, measure): (fn() -> Setting, Measure),
) -> Claim {
    Claim {
        paper: Paper::Lulic,
        name,
        what,
        conditions: TREND,
        unit: Unit::Ratio,
        expected: Expected::Series {
            values,
            within: 0.05,
            trend,
        },
        test: Test::Run {
            pages: Subjects::Pages(pages),
            setting,
            measure,
            factors: &[],
        },
    }
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

/// Load over HTTP at the widest pipe to that at a fifth of it, at the longest delay.
fn knee(bench: &Bench<'_>, pages: &Subjects, setting: &Setting) -> Result<Measured, String> {
    let cells = [2048, 10_240].map(|bandwidth| cell(setting, bandwidth, 500));
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
            pages: Subjects::Pages(fitted_flags),
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
            pages: Subjects::Pages(fitted_flags),
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
            pages: Subjects::Pages(fitted_flags),
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
            pages: Subjects::Pages(fitted_flags),
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
            pages: Subjects::Pages(fitted_flags),
            setting: against_https,
            measure: trips_of_base,
            factors: FACTORS,
        },
    },
    Claim {
        paper: Paper::Lulic,
        name: "trips-spdy",
        what: "round trips of the flags over SPDY",
        conditions: "as before; that 46 streams are open at once is fitted to load times, these among them",
        unit: Unit::RoundTrips,
        expected: Expected::Number {
            value: 12.0,
            within: 1.0,
            neutral: None,
        },
        test: Test::Run {
            pages: Subjects::Pages(fitted_flags),
            setting: against_http,
            measure: trips_of_other,
            factors: FACTORS,
        },
    },
    ratio(
        ("flags-tls", "load of 196 small images, HTTPS to HTTP"),
        (1.10, 0.05),
        GRID,
        fitted_flags,
        flags_https_against_http,
        grid,
    ),
    ratio(
        ("bing", "load of a small page, SPDY to HTTP"),
        (1.14, 0.05),
        STAND_IN,
        bing,
        against_http,
        grid,
    ),
    ratio(
        ("yahoo", "load of a page of medium size, SPDY to HTTP"),
        (1.05, 0.05),
        STAND_IN,
        yahoo,
        against_http,
        grid,
    ),
    ratio(
        ("amazon", "load of a large page, SPDY to HTTP"),
        (1.05, 0.05),
        STAND_IN,
        amazon,
        against_http,
        grid,
    ),
    ratio(
        ("bing-https", "load of a small page, SPDY to HTTPS"),
        (0.84, 0.05),
        STAND_IN,
        bing,
        against_https,
        grid,
    ),
    ratio(
        (
            "yahoo-https",
            "load of a page of medium size, SPDY to HTTPS",
        ),
        (0.94, 0.05),
        STAND_IN,
        yahoo,
        against_https,
        grid,
    ),
    ratio(
        ("amazon-https", "load of a large page, SPDY to HTTPS"),
        (0.99, 0.05),
        STAND_IN,
        amazon,
        against_https,
        grid,
    ),
    ratio(
        ("bing-tls", "load of a small page, HTTPS to HTTP"),
        (1.36, 0.05),
        STAND_IN,
        bing,
        https_against_http,
        grid,
    ),
    ratio(
        ("yahoo-tls", "load of a page of medium size, HTTPS to HTTP"),
        (1.12, 0.05),
        STAND_IN,
        yahoo,
        https_against_http,
        grid,
    ),
    ratio(
        ("amazon-tls", "load of a large page, HTTPS to HTTP"),
        (1.05, 0.05),
        STAND_IN,
        amazon,
        https_against_http,
        grid,
    ),
    ratio(
        (
            "amazon-ready",
            "DOMContentLoaded of a large page, SPDY to HTTP",
        ),
        (3.22, 0.5),
        STAND_IN,
        amazon,
        against_http,
        grid_of_dom_content_loaded,
    ),
    won(
        (
            "bing-wins",
            "cells in which SPDY loads a small page faster than HTTP, 9 of 42",
        ),
        9,
        bing,
        against_http,
    ),
    won(
        (
            "yahoo-wins",
            "cells in which SPDY loads a page of medium size faster than HTTP, 25 of 42",
        ),
        25,
        yahoo,
        against_http,
    ),
    won(
        (
            "amazon-wins",
            "cells in which SPDY loads a large page faster than HTTP, 18 of 42",
        ),
        18,
        amazon,
        against_http,
    ),
    won(
        (
            "flags-https-wins",
            "cells in which SPDY loads the flags faster than HTTPS, 42 of 42",
        ),
        42,
        fitted_flags,
        flags_against_https,
    ),
    won(
        (
            "bing-https-wins",
            "cells in which SPDY loads a small page faster than HTTPS, 41 of 42",
        ),
        41,
        bing,
        against_https,
    ),
    won(
        (
            "yahoo-https-wins",
            "cells in which SPDY loads a page of medium size faster than HTTPS, 33 of 42",
        ),
        33,
        yahoo,
        against_https,
    ),
    won(
        (
            "amazon-https-wins",
            "cells in which SPDY loads a large page faster than HTTPS, 27 of 42",
        ),
        27,
        amazon,
        against_https,
    ),
    trend(
        (
            "flags-bandwidth",
            "SPDY gains on HTTP with bandwidth, flags: to 512 kbit/s, from 5,120",
        ),
        &[0.51, 0.33],
        Trend::Falling,
        fitted_flags,
        (flags_against_http, by_bandwidth),
    ),
    trend(
        (
            "bing-bandwidth",
            "SPDY falls back behind HTTP with bandwidth, small page",
        ),
        &[1.07, 1.22],
        Trend::Rising,
        bing,
        (against_http, by_bandwidth),
    ),
    trend(
        (
            "yahoo-bandwidth",
            "SPDY falls back behind HTTP with bandwidth, page of medium size",
        ),
        &[0.96, 1.22],
        Trend::Rising,
        yahoo,
        (against_http, by_bandwidth),
    ),
    trend(
        (
            "amazon-bandwidth",
            "SPDY falls back behind HTTP with bandwidth, large page",
        ),
        &[1.00, 1.11],
        Trend::Rising,
        amazon,
        (against_http, by_bandwidth),
    ),
    trend(
        (
            "flags-delay",
            "SPDY gains on HTTP with delay, flags: to 50 ms, from 250",
        ),
        &[0.52, 0.34],
        Trend::Falling,
        fitted_flags,
        (flags_against_http, by_delay),
    ),
    trend(
        (
            "bing-https-delay",
            "SPDY gains on HTTPS with delay, small page: to 50 ms, from 250",
        ),
        &[0.87, 0.77],
        Trend::Falling,
        bing,
        (against_https, by_delay),
    ),
    trend(
        (
            "yahoo-https-delay",
            "SPDY gains on HTTPS with delay, page of medium size",
        ),
        &[0.98, 0.86],
        Trend::Falling,
        yahoo,
        (against_https, by_delay),
    ),
    trend(
        (
            "amazon-https-delay",
            "SPDY gains on HTTPS with delay, large page",
        ),
        &[1.03, 0.94],
        Trend::Falling,
        amazon,
        (against_https, by_delay),
    ),
    Claim {
        paper: Paper::Lulic,
        name: "knee",
        what: "load time flattens: HTTP at 10,240 kbit/s to that at 2,048",
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
