//! The filmstrip of a browser's load: its Speed Index, and a picture of it.
//!
//! Speed Index (WebPageTest, Lighthouse) is the area above the curve of visual progress, in milliseconds: the mean time at which the
//! window has its last content. Visual progress is by colour histograms. Each channel of a frame has 256 counts of pixels, without
//! those that are almost white, which are the empty window. The progress of a frame is the part of the last frame's counts that it
//! has. Lighthouse rounds each progress down to a percent; this does not.

use std::fmt::Write as _;
use std::time::Duration;

use data_encoding::BASE64;
use spdy_page::screencast::Screenshot;
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
/// Frames in a row of a picture.
const COLUMNS: u32 = 6;
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
        let steps =
            |ms: u64| u32::try_from(end.as_millis().div_ceil(ms.into())).unwrap_or(u32::MAX);
        let fits = |&ms: &u64| steps(ms) < FRAMES;
        let interval_ms = INTERVALS_MS.into_iter().find(fits);
        let interval_ms = interval_ms.unwrap_or(INTERVALS_MS[INTERVALS_MS.len() - 1]);
        let count = steps(interval_ms).min(FRAMES - 1) + 1;
        let first = self.screenshots.first().and_then(|shot| size(&shot.jpeg));
        let (width, height) = first.unwrap_or((500, 281));
        let height = (FRAME_WIDTH as usize * height / width.max(1)) as u32;
        let (step_x, step_y) = (FRAME_WIDTH + 10, height + 30);
        let all_width = count.min(COLUMNS) * step_x + 10;
        let all_height = count.div_ceil(COLUMNS) * step_y + 10;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{all_width}\" height=\"{all_height}\" \
             font-family=\"sans-serif\" font-size=\"13\">\n<rect width=\"100%\" height=\"100%\" fill=\"#eee\"/>\n"
        );
        let mut defined = None;
        for number in 0..count {
            let at = Duration::from_millis(u64::from(number) * interval_ms);
            let x = 10 + number % COLUMNS * step_x;
            let y = 10 + number / COLUMNS * step_y;
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{y}\" width=\"{FRAME_WIDTH}\" height=\"{height}\" fill=\"#fff\" stroke=\"#999\"/>"
            );
            let mut frames = self.screenshots.iter();
            if let Some(frame) = frames.rposition(|shot| shot.at <= at) {
                if defined != Some(frame) {
                    defined = Some(frame);
                    let jpeg = BASE64.encode(&self.screenshots[frame].jpeg);
                    let _ = write!(
                        svg,
                        "<defs><image id=\"f{frame}\" width=\"{FRAME_WIDTH}\" height=\"{height}\" \
                         href=\"data:image/jpeg;base64,{jpeg}\"/></defs>"
                    );
                }
                let _ = write!(svg, "<use href=\"#f{frame}\" x=\"{x}\" y=\"{y}\"/>");
            }
            let (middle, base) = (x + FRAME_WIDTH / 2, y + height + 17);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A grey and a white picture of 8 by 8 pixels, by Chromium.
    const GREY: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/4gHYSUNDX1BST0ZJTEUAAQEAAAHIAAAAAAQwAABtbnRyUkdCIFhZWiAH4AABAAEAAAAAAABhY3NwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAA9tYAAQAAAADTLQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAlkZXNjAAAA8AAAACRyWFlaAAABFAAAABRnWFlaAAABKAAAABRiWFlaAAABPAAAABR3dHB0AAABUAAAABRyVFJDAAABZAAAAChnVFJDAAABZAAAAChiVFJDAAABZAAAAChjcHJ0AAABjAAAADxtbHVjAAAAAAAAAAEAAAAMZW5VUwAAAAgAAAAcAHMAUgBHAEJYWVogAAAAAAAAb6IAADj1AAADkFhZWiAAAAAAAABimQAAt4UAABjaWFlaIAAAAAAAACSgAAAPhAAAts9YWVogAAAAAAAA9tYAAQAAAADTLXBhcmEAAAAAAAQAAAACZmYAAPKnAAANWQAAE9AAAApbAAAAAAAAAABtbHVjAAAAAAAAAAEAAAAMZW5VUwAAACAAAAAcAEcAbwBvAGcAbABlACAASQBuAGMALgAgADIAMAAxADb/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAIAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAT/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAAAP/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AJAAf//Z";
    const WHITE: &str = "/9j/4AAQSkZJRgABAQAAAQABAAD/4gHYSUNDX1BST0ZJTEUAAQEAAAHIAAAAAAQwAABtbnRyUkdCIFhZWiAH4AABAAEAAAAAAABhY3NwAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAQAA9tYAAQAAAADTLQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAlkZXNjAAAA8AAAACRyWFlaAAABFAAAABRnWFlaAAABKAAAABRiWFlaAAABPAAAABR3dHB0AAABUAAAABRyVFJDAAABZAAAAChnVFJDAAABZAAAAChiVFJDAAABZAAAAChjcHJ0AAABjAAAADxtbHVjAAAAAAAAAAEAAAAMZW5VUwAAAAgAAAAcAHMAUgBHAEJYWVogAAAAAAAAb6IAADj1AAADkFhZWiAAAAAAAABimQAAt4UAABjaWFlaIAAAAAAAACSgAAAPhAAAts9YWVogAAAAAAAA9tYAAQAAAADTLXBhcmEAAAAAAAQAAAACZmYAAPKnAAANWQAAE9AAAApbAAAAAAAAAABtbHVjAAAAAAAAAAEAAAAMZW5VUwAAACAAAAAcAEcAbwBvAGcAbABlACAASQBuAGMALgAgADIAMAAxADb/2wBDABsSFBcUERsXFhceHBsgKEIrKCUlKFE6PTBCYFVlZF9VXVtqeJmBanGQc1tdhbWGkJ6jq62rZ4C8ybqmx5moq6T/2wBDARweHigjKE4rK06kbl1upKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKSkpKT/wAARCAAIAAgDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAb/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFAEBAAAAAAAAAAAAAAAAAAAAAP/EABQRAQAAAAAAAAAAAAAAAAAAAAD/2gAMAwEAAhEDEQA/AKYAH//Z";

    fn filmstrip(frames: &[(u64, &str)]) -> Filmstrip {
        let shot = |&(ms, jpeg): &(u64, &str)| Screenshot {
            at: Duration::from_millis(ms),
            jpeg: BASE64.decode(jpeg.as_bytes()).expect("it is base64"),
        };
        Filmstrip {
            screenshots: frames.iter().map(shot).collect(),
        }
    }

    #[test]
    fn speed_index_is_the_area_above_the_curve_of_visual_progress() {
        let area = |frames: &[(u64, f64)]| {
            let frames = frames.iter();
            area(frames.map(|&(ms, progress)| (Duration::from_millis(ms), progress)))
        };
        assert_eq!(area(&[(1_000, 1.0)]), 1_000.0);
        assert_eq!(area(&[(1_000, 0.5), (3_000, 1.0)]), 2_000.0);
        assert_eq!(area(&[(500, 0.75), (2_500, 0.5), (3_500, 1.0)]), 1_500.0);
    }

    #[test]
    fn progress_is_the_common_part_of_the_colours() {
        let of = |values: &[(usize, u32)]| {
            let mut counts = [[0; 256]; 3];
            for &(value, count) in values {
                counts[0][value] = count;
            }
            counts
        };
        let last = of(&[(10, 60), (20, 40)]);
        assert_eq!(progress(&of(&[]), &last), 0.0);
        assert_eq!(progress(&of(&[(10, 30), (20, 60), (30, 9)]), &last), 0.7);
        assert_eq!(progress(&last, &last), 1.0);
        assert_eq!(progress(&of(&[]), &of(&[])), 1.0);
    }

    #[test]
    fn white_frames_are_no_progress_and_other_data_has_no_index() {
        let strip = filmstrip(&[(0, WHITE), (400, GREY), (900, GREY)]);
        assert_eq!(strip.speed_index_ms(), Some(400.0));
        assert_eq!(filmstrip(&[]).speed_index_ms(), None);
        assert_eq!(filmstrip(&[(0, "AAAA")]).speed_index_ms(), None);
    }

    #[test]
    fn the_picture_has_each_used_frame_once() {
        let strip = filmstrip(&[(0, WHITE), (120, GREY), (220, WHITE), (1_100, GREY)]);
        let svg = strip.svg();
        // Every 50 ms from 0 to 1,100 ms.
        assert_eq!(svg.matches("</text>").count(), 23, "{svg}");
        assert_eq!(svg.matches("<image id=").count(), 4);
        assert!(svg.contains("1.10 s") && svg.contains("id=\"f3\""));
    }
}
