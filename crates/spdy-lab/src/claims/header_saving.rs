//! Saving of header compression on recorded heads, counted without a network.
//!
//! Each host and direction of a recording has a zlib stream. *Before* is the head as HTTP/1.1 text, *after* the bytes in the frame,
//! as in `examples/headers`.

use spdy_frame::compress::DeflateOptions;

use crate::claims::measured::{MeasuredResult, Point};
use crate::claims::runner::ClaimRunner;
use crate::claims::setting::{PageSet, Setting};
use crate::stats::Bootstrap;

/// Saving of request heads by the compression of the setting's second side, percent.
pub(crate) fn requests(
    bench: &ClaimRunner<'_>,
    _: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    header_saving(bench, 0, setting)
}

/// Saving of response heads by the compression of the setting's second side, percent.
pub(crate) fn responses(
    bench: &ClaimRunner<'_>,
    _: &PageSet,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    header_saving(bench, 1, setting)
}

fn header_saving(
    bench: &ClaimRunner<'_>,
    direction: usize,
    setting: &Setting,
) -> Result<MeasuredResult, String> {
    let mut options = DeflateOptions::default();
    options.compression = setting.other.options.spdy_compression;
    let heads = bench.corpus()?.heads().iter();
    let sizes: Vec<_> = heads
        .map(|heads| heads.sizes(direction, &options))
        .collect();
    let saved = |sizes: &[(f64, f64)]| {
        let sum = |of: fn(&(f64, f64)) -> f64| sizes.iter().map(of).sum::<f64>();
        100.0 * (1.0 - sum(|size| size.1) / sum(|size| size.0))
    };
    let estimate = Bootstrap::default().of(&sizes, saved);
    let estimate = estimate.ok_or("the corpus has no heads")?;
    let level = String::new();
    Ok(MeasuredResult {
        points: vec![Point { level, estimate }],
        rise: None,
        loads: 0,
        left_out: 0,
    })
}
