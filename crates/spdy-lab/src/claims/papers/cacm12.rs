//! Thomas, Jurdak and Atkinson 2012, with Google's measurements of 2011: bytes and packets of the top 45 pages.

use crate::claims::claim::{Claim, ClaimedResult, MeasureFn, Paper, Test};
use crate::claims::factor::ClaimFactor;
use crate::claims::measured::{MeasuredResult, Unit};
use crate::claims::papers::belshe::top_300;
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting};
use crate::claims::statistics::{Figures, change};

const CONDITIONS: &str = "Google's test of 2011, the top 45 pages, SPDY without TLS; the paper does not state the network; here: pages \
                          of 2012-13 by \
                          --corpus, 2 Mbit/s down, 386 kbit/s up, 100 ms, no loss, TCP of 2009, initial window 3, each host its session";

const FACTORS: &[ClaimFactor] = &[
    ClaimFactor {
        name: "SPDY on one connection, everything on one host",
        change: |setting| setting.other.folded = true,
    },
    ClaimFactor::connections::<2>("HTTP on two connections a host"),
    ClaimFactor::initial_window::<10>("initial window 10"),
    ClaimFactor::BOTH_IN_TLS,
    ClaimFactor {
        name: "headers not compressed",
        change: |setting| {
            setting.other.options.spdy_compression = spdy_frame::compress::Compression::Zlib(0);
        },
    },
];

const fn reduced(
    name: &'static str,
    what: &'static str,
    value: f64,
    within: f64,
    measure: MeasureFn,
) -> Claim {
    Claim {
        paper: Paper::Cacm12,
        name,
        what,
        conditions: CONDITIONS,
        unit: Unit::Percent,
        expected: ClaimedResult::Number {
            value,
            within,
            neutral: Some(0.0),
        },
        test: Test::Run {
            pages: PageSet::Corpus,
            setting: top_300,
            measure,
            factors: FACTORS,
        },
    }
}

fn changed(
    bench: &ClaimRunner<'_>,
    pages: &PageSet,
    setting: &Setting,
    figure: fn(&Figures) -> f64,
) -> Result<MeasuredResult, String> {
    bench.one(pages, setting, |pairs| change(pairs, figure))
}

pub(crate) const CLAIMS: &[Claim] = &[
    reduced(
        "uploaded",
        "bytes from the client against HTTP",
        -51.0,
        5.0,
        |bench, pages, setting| changed(bench, pages, setting, |it| it.bytes_up),
    ),
    reduced(
        "downloaded",
        "bytes to the client against HTTP",
        -4.0,
        2.0,
        |bench, pages, setting| changed(bench, pages, setting, |it| it.bytes_down),
    ),
    reduced(
        "packets",
        "packets against HTTP",
        -19.0,
        5.0,
        |bench, pages, setting| changed(bench, pages, setting, |it| it.packets),
    ),
];
