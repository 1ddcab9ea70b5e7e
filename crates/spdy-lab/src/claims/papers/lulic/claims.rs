//! Lulic's claims.

use super::claim_kinds::{ratio, trend, trips, wins_claim};
use super::grid::{
    by_bandwidth, by_delay, grid, grid_of_dom_content_loaded, knee, trips_of_base, trips_of_other,
    wins,
};
use super::setting::{
    AMAZON, BING, FACTORS, FLAGS, YAHOO, against_http, against_https, flags_against_http,
    flags_against_https, flags_https_against_http, https_against_http,
};
use crate::claims::claim::{BoundSide, Claim, ClaimedResult, Paper, Test, Trend};
use crate::claims::measured::Unit;

const GRID: &str = "7 bandwidths, 6 delays; one run instead of 7, since nothing is random; 46 streams, 640 B an image and 305 ms for the \
                    browser are fitted to the paper's data";
const STAND_IN: &str = "7 bandwidths, 6 delays; the paper's copy of the page is lost: the stand-in has the bytes and round trips over \
                        HTTP, and its structure is invented";
const SLOPE: &str =
    "10,240 kbit/s, delays 50 to 250 ms: load over the true round trip, four delays";
const FITTED_SLOPE: &str =
    "as before; the 46 concurrent streams are fitted to load times, including these";

pub(crate) const CLAIMS: &[Claim] = &[
    ratio(
        (
            "flags-http",
            "load of 196 small images, SPDY to HTTP (geometric mean of cells)",
        ),
        (0.41, 0.05),
        GRID,
        FLAGS,
        flags_against_http,
        grid,
    ),
    ratio(
        (
            "flags-https",
            "load of 196 small images, SPDY to HTTPS (geometric mean of cells)",
        ),
        (0.37, 0.05),
        GRID,
        FLAGS,
        flags_against_https,
        grid,
    ),
    Claim {
        paper: Paper::Lulic,
        name: "flags-wins",
        what: "cells in which SPDY loads the flags faster than HTTP",
        conditions: GRID,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value: 100.0,
            within: 0.1,
            neutral: Some(50.0),
        },
        test: Test::Run {
            pages: FLAGS,
            setting: flags_against_http,
            measure: wins,
            factors: FACTORS,
        },
    },
    trips(
        ("trips-http", "round trips of the flags over HTTP"),
        36.2,
        SLOPE,
        (against_http, trips_of_base),
    ),
    trips(
        ("trips-https", "round trips of the flags over HTTPS"),
        38.6,
        SLOPE,
        (against_https, trips_of_base),
    ),
    trips(
        ("trips-spdy", "round trips of the flags over SPDY"),
        12.0,
        FITTED_SLOPE,
        (against_http, trips_of_other),
    ),
    ratio(
        ("flags-tls", "load of 196 small images, HTTPS to HTTP"),
        (1.10, 0.05),
        GRID,
        FLAGS,
        flags_https_against_http,
        grid,
    ),
    ratio(
        ("bing", "load of a small page, SPDY to HTTP"),
        (1.14, 0.05),
        STAND_IN,
        BING,
        against_http,
        grid,
    ),
    ratio(
        ("yahoo", "load of a page of medium size, SPDY to HTTP"),
        (1.05, 0.05),
        STAND_IN,
        YAHOO,
        against_http,
        grid,
    ),
    ratio(
        ("amazon", "load of a large page, SPDY to HTTP"),
        (1.05, 0.05),
        STAND_IN,
        AMAZON,
        against_http,
        grid,
    ),
    ratio(
        ("bing-https", "load of a small page, SPDY to HTTPS"),
        (0.84, 0.05),
        STAND_IN,
        BING,
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
        YAHOO,
        against_https,
        grid,
    ),
    ratio(
        ("amazon-https", "load of a large page, SPDY to HTTPS"),
        (0.99, 0.05),
        STAND_IN,
        AMAZON,
        against_https,
        grid,
    ),
    ratio(
        ("bing-tls", "load of a small page, HTTPS to HTTP"),
        (1.36, 0.05),
        STAND_IN,
        BING,
        https_against_http,
        grid,
    ),
    ratio(
        ("yahoo-tls", "load of a page of medium size, HTTPS to HTTP"),
        (1.12, 0.05),
        STAND_IN,
        YAHOO,
        https_against_http,
        grid,
    ),
    ratio(
        ("amazon-tls", "load of a large page, HTTPS to HTTP"),
        (1.05, 0.05),
        STAND_IN,
        AMAZON,
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
        AMAZON,
        against_http,
        grid_of_dom_content_loaded,
    ),
    wins_claim(
        (
            "bing-wins",
            "cells in which SPDY loads a small page faster than HTTP, 9 of 42",
        ),
        9,
        BING,
        against_http,
    ),
    wins_claim(
        (
            "yahoo-wins",
            "cells in which SPDY loads a page of medium size faster than HTTP, 25 of 42",
        ),
        25,
        YAHOO,
        against_http,
    ),
    wins_claim(
        (
            "amazon-wins",
            "cells in which SPDY loads a large page faster than HTTP, 18 of 42",
        ),
        18,
        AMAZON,
        against_http,
    ),
    wins_claim(
        (
            "flags-https-wins",
            "cells in which SPDY loads the flags faster than HTTPS, 42 of 42",
        ),
        42,
        FLAGS,
        flags_against_https,
    ),
    wins_claim(
        (
            "bing-https-wins",
            "cells in which SPDY loads a small page faster than HTTPS, 41 of 42",
        ),
        41,
        BING,
        against_https,
    ),
    wins_claim(
        (
            "yahoo-https-wins",
            "cells in which SPDY loads a page of medium size faster than HTTPS, 33 of 42",
        ),
        33,
        YAHOO,
        against_https,
    ),
    wins_claim(
        (
            "amazon-https-wins",
            "cells in which SPDY loads a large page faster than HTTPS, 27 of 42",
        ),
        27,
        AMAZON,
        against_https,
    ),
    trend(
        (
            "flags-bandwidth",
            "SPDY gains on HTTP with bandwidth, flags: to 512 kbit/s, from 5,120",
        ),
        &[0.51, 0.33],
        Trend::Falling,
        FLAGS,
        (flags_against_http, by_bandwidth),
    ),
    trend(
        (
            "bing-bandwidth",
            "SPDY falls back behind HTTP with bandwidth, small page",
        ),
        &[1.07, 1.22],
        Trend::Rising,
        BING,
        (against_http, by_bandwidth),
    ),
    trend(
        (
            "yahoo-bandwidth",
            "SPDY falls back behind HTTP with bandwidth, page of medium size",
        ),
        &[0.96, 1.22],
        Trend::Rising,
        YAHOO,
        (against_http, by_bandwidth),
    ),
    trend(
        (
            "amazon-bandwidth",
            "SPDY falls back behind HTTP with bandwidth, large page",
        ),
        &[1.00, 1.11],
        Trend::Rising,
        AMAZON,
        (against_http, by_bandwidth),
    ),
    trend(
        (
            "flags-delay",
            "SPDY gains on HTTP with delay, flags: to 50 ms, from 250",
        ),
        &[0.52, 0.34],
        Trend::Falling,
        FLAGS,
        (flags_against_http, by_delay),
    ),
    trend(
        (
            "bing-https-delay",
            "SPDY gains on HTTPS with delay, small page: to 50 ms, from 250",
        ),
        &[0.87, 0.77],
        Trend::Falling,
        BING,
        (against_https, by_delay),
    ),
    trend(
        (
            "yahoo-https-delay",
            "SPDY gains on HTTPS with delay, page of medium size",
        ),
        &[0.98, 0.86],
        Trend::Falling,
        YAHOO,
        (against_https, by_delay),
    ),
    trend(
        (
            "amazon-https-delay",
            "SPDY gains on HTTPS with delay, large page",
        ),
        &[1.03, 0.94],
        Trend::Falling,
        AMAZON,
        (against_https, by_delay),
    ),
    Claim {
        paper: Paper::Lulic,
        name: "knee",
        what: "load time flattens: HTTP at 10,240 kbit/s to that at 2,048",
        conditions: "delay 500 ms; the stand-in for Yahoo's login; counting a tenth faster as flat is an assumption",
        unit: Unit::Ratio,
        expected: ClaimedResult::Beyond {
            side: BoundSide::Above,
            bound: 0.9,
        },
        test: Test::Run {
            pages: YAHOO,
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
        expected: ClaimedResult::Number {
            value: 50.0,
            within: 10.0,
            neutral: None,
        },
        test: Test::CannotRun("the sites of 2013 no longer exist"),
    },
];
