//! Repeats the fit of [`Parameters::FITTED`](spdy_lab::lulic::Parameters::FITTED) to the load times that Lulic measured.
//!
//! ```text
//! cargo run --release -p spdy-lab --example lulic_fit                  a minute of two cores
//! cargo run --release -p spdy-lab --example lulic_fit -- 675 100 205   only these: bytes, streams, ms
//! ```
//!
//! Tries every pair of an image size and a number of streams, with the best browser time for the pair, which is computed directly:
//! first a coarse grid, then a fine one around the best pair. The error is the mean error of load over all 126 cells. Each line is an
//! image size with its best number of streams; the last line is the best of all.

use std::io::Write;

use spdy_lab::lulic::{LulicComparison, LulicError, Parameters, best_browser_ms};
use spdy_sim::options::RaceProtocol;

/// Bytes of an image and step, in the coarse and in the fine grid.
const IMAGES: (std::ops::RangeInclusive<usize>, usize) = (420..=800, 20);
const IMAGES_CLOSE: (usize, usize) = (20, 5);

/// Numbers of streams in the coarse grid; the fine grid has all numbers between the best one's neighbours.
const STREAMS: [u32; 17] = [
    16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60, 66, 80, 100, 140, 196,
];

/// Errors of one set of parameters, by method.
type FitResult = (Parameters, [LulicError; 3]);

fn loads(image_bytes: usize, streams: u32, protocol: RaceProtocol) -> LulicComparison {
    let parameters = Parameters {
        image_bytes: Some(image_bytes),
        streams,
        browser_ms: 0.0,
    };
    LulicComparison::with(&parameters, protocol)
}

fn mean((_, errors): &FitResult) -> f64 {
    LulicError::over(errors).mean
}

/// The best of `streams` for images of this size.
fn best_of(image_bytes: usize, streams: impl Iterator<Item = u32>) -> FitResult {
    // HTTP/1.1 has no streams.
    let [http, https] =
        [RaceProtocol::Http, RaceProtocol::Https].map(|it| loads(image_bytes, 1, it));
    let tried = streams.map(|streams| {
        let spdy = loads(image_bytes, streams, RaceProtocol::Spdy);
        let all = [http.clone(), https.clone(), spdy];
        let browser_ms = best_browser_ms(&all).round();
        let errors = all.each_ref().map(|it| it.load_error(browser_ms));
        let parameters = Parameters {
            image_bytes: Some(image_bytes),
            streams,
            browser_ms,
        };
        (parameters, errors)
    });
    let best = tried.min_by(|a, b| mean(a).total_cmp(&mean(b)));
    best.expect("a number of streams is tried")
}

fn print_set(out: &mut impl Write, tried: &FitResult) -> std::io::Result<()> {
    let (parameters, errors) = tried;
    let image = parameters.image_bytes.unwrap_or_default();
    let (streams, browser_ms) = (parameters.streams, parameters.browser_ms);
    write!(out, "{image:>3} B   {streams:>5}   {browser_ms:>4} ms")?;
    for mean in errors.iter().map(|error| error.mean).chain([mean(tried)]) {
        write!(out, "  {:>5.2} %", mean * 100.0)?;
    }
    writeln!(out)?;
    out.flush()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::stdout().lock();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    writeln!(
        out,
        "image   streams  browser     http    https     spdy      all"
    )?;
    if let [image_bytes, streams, browser_ms] = &arguments[..] {
        let (image_bytes, browser_ms) = (image_bytes.parse()?, browser_ms.parse()?);
        let parameters = Parameters {
            image_bytes: Some(image_bytes),
            streams: streams.parse()?,
            browser_ms,
        };
        let methods = [RaceProtocol::Http, RaceProtocol::Https, RaceProtocol::Spdy];
        let errors =
            methods.map(|it| LulicComparison::with(&parameters, it).load_error(browser_ms));
        return Ok(print_set(&mut out, &(parameters, errors))?);
    }
    let mut best: Option<FitResult> = None;
    let mut keep = |tried: FitResult, best: &mut Option<FitResult>| -> std::io::Result<()> {
        print_set(&mut out, &tried)?;
        if best.as_ref().is_none_or(|best| mean(&tried) < mean(best)) {
            *best = Some(tried);
        }
        Ok(())
    };
    let (images, step) = IMAGES;
    for image_bytes in images.step_by(step) {
        keep(best_of(image_bytes, STREAMS.into_iter()), &mut best)?;
    }
    let coarse = best.as_ref().expect("sizes of images are tried").0;
    let at = STREAMS.iter().position(|it| *it == coarse.streams);
    let at = at.expect("one of those that were tried");
    let (fewer, more) = (at.saturating_sub(1), (at + 1).min(STREAMS.len() - 1));
    let ((around, step), middle) = (IMAGES_CLOSE, coarse.image_bytes.unwrap_or_default());
    for image_bytes in (middle - around..=middle + around).step_by(step) {
        let streams = STREAMS[fewer]..=STREAMS[more];
        keep(best_of(image_bytes, streams), &mut best)?;
    }
    let least = best.expect("sizes of images are tried");
    writeln!(out, "the least of all:")?;
    Ok(print_set(&mut out, &least)?)
}
