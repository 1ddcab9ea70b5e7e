//! The filmstrip of a browser's load: its Speed Index, and a picture of it.
//!
//! Speed Index (WebPageTest, Lighthouse) is the area above the curve of visual progress, in milliseconds: the mean time at which the
//! window has its last content. Visual progress is by colour histograms. Each channel of a frame has 256 counts of pixels, without
//! those that are almost white, which are the empty window. The progress of a frame is the part of the last frame's counts that it
//! has. Lighthouse rounds each progress down to a percent; this does not.

use std::fmt::Write as _;
use std::time::Duration;

use data_encoding::BASE64;
use spdy_page::page_trace::Screenshot;
use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// A pixel counts as white if no channel is below this.
const WHITE: u8 = 249;
/// Largest width and height of a screenshot; those of a trace have at most 500 pixels.
const MAX_SIDE: usize = 4096;
/// Number of frames in a picture, at most.
const FRAMES: u32 = 24;
/// Intervals between two frames of a picture, milliseconds.
const INTERVALS_MS: [u64; 9] = [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 60_000];
/// Width of a frame in a picture.
const FRAME_WIDTH: u32 = 200;

/// Counts of the values of red, green and blue.
type Histogram = [[u32; 256]; 3];

/// The window at each change.
#[derive(Clone, Debug, Default)]
pub struct Filmstrip {
    /// In the order of their display.
    pub screenshots: Vec<Screenshot>,
}

impl Filmstrip {
    /// The Speed Index in milliseconds. `None` without screenshots, or with one that is not a JPEG picture.
    #[must_use]
    pub fn speed_index_ms(&self) -> Option<f64> {
        let histograms = self.screenshots.iter().map(|shot| histogram(&shot.jpeg));
        let histograms: Vec<Histogram> = histograms.collect::<Option<_>>()?;
        let last = histograms.last()?;
        let times = self.screenshots.iter().map(|shot| shot.at);
        let frames = times.zip(histograms.iter().map(|frame| progress(frame, last)));
        Some(area(frames))
    }

    /// The picture as SVG: frames at equal intervals up to the last change, each with its time.
    #[must_use]
    pub fn svg(&self) -> String {
        let end = self.screenshots.last().map_or(Duration::ZERO, |it| it.at);
        let steps = |ms: u64| u32::try_from(end.as_millis().div_ceil(ms.into())).unwrap_or(u32::MAX);
        let fits = |&ms: &u64| steps(ms) < FRAMES;
        let interval_ms = INTERVALS_MS.into_iter().find(fits);
        let interval_ms = interval_ms.unwrap_or(INTERVALS_MS[INTERVALS_MS.len() - 1]);
        let count = steps(interval_ms).min(FRAMES - 1) + 1;
        let first = self.screenshots.first().and_then(|shot| size(&shot.jpeg));
        let (width, height) = first.unwrap_or((500, 281));
        let height = (FRAME_WIDTH as usize * height / width.max(1)) as u32;
        let (step_x, all_height) = (FRAME_WIDTH + 10, height + 40);
        let all_width = count * step_x + 10;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all_width}\" height=\"{all_height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#eee\"/>\n"
        );
        let mut defined = None;
        for number in 0..count {
            let at = Duration::from_millis(u64::from(number) * interval_ms);
            let x = 10 + number * step_x;
            let mut frames = self.screenshots.iter();
            let frame = frames.rposition(|shot| shot.at <= at);
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"10\" width=\"{FRAME_WIDTH}\" height=\"{height}\" fill=\"#fff\" stroke=\"#999\"/>"
            );
            if let Some(frame) = frame {
                if defined != Some(frame) {
                    defined = Some(frame);
                    let jpeg = BASE64.encode(&self.screenshots[frame].jpeg);
                    let _ = write!(
                        svg,
                        "<defs><image id=\"f{frame}\" width=\"{FRAME_WIDTH}\" height=\"{height}\" \
                         href=\"data:image/jpeg;base64,{jpeg}\"/></defs>"
                    );
                }
                let _ = write!(svg, "<use href=\"#f{frame}\" x=\"{x}\" y=\"10\"/>");
            }
            let (middle, base) = (x + FRAME_WIDTH / 2, height + 28);
            let _ = writeln!(
                svg,
                "<text x=\"{middle}\" y=\"{base}\" text-anchor=\"middle\">{:.2} s</text>",
                at.as_secs_f64()
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// The area above the curve of visual progress, milliseconds; before the first frame the window is empty.
fn area(frames: impl Iterator<Item = (Duration, f64)>) -> f64 {
    let (mut area, mut since, mut done) = (0.0, 0.0, 0.0);
    for (at, progress) in frames {
        let at = at.as_secs_f64() * 1e3;
        area += (at - since) * (1.0 - done);
        (since, done) = (at, progress);
    }
    area
}

/// The part of the counts of `last` that `frame` has; 1 if the last frame is empty too.
fn progress(frame: &Histogram, last: &Histogram) -> f64 {
    let counts = || frame.iter().flatten().zip(last.iter().flatten());
    let all: u64 = counts().map(|(_, &last)| u64::from(last)).sum();
    let common: u64 = counts().map(|(&one, &last)| u64::from(one.min(last))).sum();
    match all {
        0 => 1.0,
        all => common as f64 / all as f64,
    }
}

fn histogram(jpeg: &[u8]) -> Option<Histogram> {
    let mut counts = [[0; 256]; 3];
    let values = decoder(jpeg).decode().ok()?;
    for pixel in values.chunks_exact(3) {
        if pixel.iter().any(|&value| value < WHITE) {
            for (channel, &value) in counts.iter_mut().zip(pixel) {
                channel[usize::from(value)] += 1;
            }
        }
    }
    Some(counts)
}

/// Width and height of a picture.
fn size(jpeg: &[u8]) -> Option<(usize, usize)> {
    let mut decoder = decoder(jpeg);
    decoder.decode_headers().ok()?;
    decoder.dimensions()
}

fn decoder(jpeg: &[u8]) -> JpegDecoder<ZCursor<&[u8]>> {
    let options = DecoderOptions::default()
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE)
        .jpeg_set_out_colorspace(ColorSpace::RGB);
    JpegDecoder::new_with_options(ZCursor::new(jpeg), options)
}
