//! Which images become WebP, and that they are shown the same.

use std::borrow::Cow;

use png::{BitDepth, ColorType, Info, ScaledFloat};
use proptest::prelude::*;
use spdy_proxy::images::convert::{ImageFormat, to_webp};

const PHOTO: &[u8] = include_bytes!("../images/photo.jpg");
const PROGRESSIVE: &[u8] = include_bytes!("../images/progressive.jpg");
const CMYK: &[u8] = include_bytes!("../images/cmyk.jpg");
/// The length of the signature and of `IHDR`: another chunk may follow.
const PNG_HEAD_BYTES: usize = 8 + 25;
const MIB: usize = 1024 * 1024;

/// A PNG image with pixels that repeat little.
pub(crate) fn png(color: ColorType, width: u32, height: u32) -> Vec<u8> {
    let mut info = Info::with_size(width, height);
    info.color_type = color;
    png_of(info, &pixels(color, width, height))
}

fn pixels(color: ColorType, width: u32, height: u32) -> Vec<u8> {
    let len = color.samples() * (width * height) as usize;
    let level = |at: usize| (at * at / 97 % 64 + at / 200 % 190) as u8;
    let levels = (0..len).map(level);
    match color {
        ColorType::Indexed => levels.map(|level| level % 4).collect(),
        _ => levels.collect(),
    }
}

fn png_of(mut info: Info<'_>, pixels: &[u8]) -> Vec<u8> {
    if info.color_type == ColorType::Indexed {
        info.palette = Some(Cow::Borrowed(&[0, 0, 0, 255, 0, 0, 0, 255, 0, 9, 8, 7]));
        info.trns = Some(Cow::Borrowed(&[0, 128]));
    }
    let mut file = Vec::new();
    let encoder = png::Encoder::with_info(&mut file, info).expect("valid");
    let mut writer = encoder.write_header().expect("a Vec");
    writer.write_image_data(pixels).expect("a Vec");
    writer.finish().expect("a Vec");
    file
}

/// `png` with another chunk after its head.
fn with_chunk(png: &[u8], name: &[u8; 4], content: &[u8]) -> Vec<u8> {
    let mut crc = u32::MAX;
    for byte in name.iter().chain(content) {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 };
        }
    }
    let len = (content.len() as u32).to_be_bytes();
    let (head, rest) = png.split_at(PNG_HEAD_BYTES);
    [head, &len, name, content, &(!crc).to_be_bytes(), rest].concat()
}

/// `jpeg` with another segment after its first two bytes.
fn with_segment(jpeg: &[u8], marker: u8, content: &[u8]) -> Vec<u8> {
    let len = (content.len() as u16 + 2).to_be_bytes();
    [&jpeg[..2], &[0xff, marker], &len, content, &jpeg[2..]].concat()
}

/// An Exif segment with one entry of the first directory.
fn exif(tag: u16, value: u16) -> Vec<u8> {
    let mut content = b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01".to_vec();
    content.extend(tag.to_be_bytes());
    content.extend([0, 3, 0, 0, 0, 1]);
    content.extend(value.to_be_bytes());
    content.extend([0; 6]);
    content
}

/// An ICC profile of `len` bytes for colours of `space`.
fn profile(space: &[u8; 4], len: usize) -> Vec<u8> {
    let mut profile: Vec<u8> = (0..len).map(|at| (at * 7 % 251) as u8).collect();
    profile[16..20].copy_from_slice(space);
    profile
}

/// Pixels with alpha of a WebP image.
fn rgba(webp: &[u8]) -> Vec<u8> {
    let image = webp::Decoder::new(webp).decode().expect("valid WebP");
    match image.is_alpha() {
        true => image.to_vec(),
        false => {
            let (pixels, _) = image.as_chunks();
            pixels
                .iter()
                .flat_map(|&[r, g, b]| [r, g, b, 255])
                .collect()
        }
    }
}

/// Pixels with alpha of a PNG image.
fn rgba_of_png(png: &[u8]) -> Vec<u8> {
    let mut decoder = png::Decoder::new(std::io::Cursor::new(png));
    decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::ALPHA);
    let mut reader = decoder.read_info().expect("valid");
    let mut bytes = vec![0; reader.output_buffer_size().expect("small")];
    let frame = reader.next_frame(&mut bytes).expect("valid");
    bytes.truncate(frame.buffer_size());
    match frame.color_type {
        ColorType::GrayscaleAlpha => {
            let (pixels, _) = bytes.as_chunks();
            pixels
                .iter()
                .flat_map(|&[grey, alpha]| [grey, grey, grey, alpha])
                .collect()
        }
        _ => bytes,
    }
}

fn webp_of_png(png: &[u8]) -> Option<Vec<u8>> {
    to_webp(png, ImageFormat::Png)
}

fn webp_of_jpeg(jpeg: &[u8]) -> Option<Vec<u8>> {
    to_webp(jpeg, ImageFormat::Jpeg)
}

#[test]
fn png_becomes_webp_with_the_same_pixels() {
    for color in [
        ColorType::Rgb,
        ColorType::Rgba, // also the colours of transparent pixels
        ColorType::Indexed,
        ColorType::Grayscale,
        ColorType::GrayscaleAlpha,
    ] {
        let png = png(color, 61, 40);
        let webp = webp_of_png(&png).expect("converted");
        assert!(rgba(&webp) == rgba_of_png(&png), "{color:?}");
    }
}

#[test]
fn jpeg_becomes_a_similar_webp() {
    for jpeg in [PHOTO, PROGRESSIVE] {
        let webp = webp_of_jpeg(jpeg).expect("converted");
        assert!(webp.len() < jpeg.len());
        let mut decoder =
            zune_jpeg::JpegDecoder::new(zune_jpeg::zune_core::bytestream::ZCursor::new(jpeg));
        let original = decoder.decode().expect("valid");
        let similar = rgba(&webp);
        let (similar, _) = similar.as_chunks::<4>();
        let similar = similar.iter().flat_map(|pixel| &pixel[..3]);
        let difference: u64 = original
            .iter()
            .zip(similar)
            .map(|(a, b)| u64::from(a.abs_diff(*b)))
            .sum();
        assert!(difference / (original.len() as u64) < 10, "{difference}");
    }
}

#[test]
fn colour_profile_is_carried_over() {
    let rgb = profile(b"RGB ", 401);
    for color in [ColorType::Rgb, ColorType::Rgba] {
        let mut info = Info::with_size(61, 40);
        info.color_type = color;
        info.icc_profile = Some(Cow::Borrowed(&rgb));
        let png = png_of(info, &pixels(color, 61, 40));
        let webp = webp_of_png(&png).expect("converted");
        assert_eq!(&webp[..4], b"RIFF");
        assert_eq!(webp[4..8], (webp.len() as u32 - 8).to_le_bytes());
        assert_eq!(&webp[8..16], b"WEBPVP8X");
        assert_eq!(&webp[30..38], b"ICCP\x91\x01\0\0");
        assert_eq!(webp[38..439], rgb);
        assert!(rgba(&webp) == rgba_of_png(&png), "{color:?}");
    }
    let segment = [b"ICC_PROFILE\0\x01\x01", &rgb[..]].concat();
    let webp = webp_of_jpeg(&with_segment(PHOTO, 0xe2, &segment)).expect("converted");
    assert_eq!(webp[38..439], rgb);
    assert_eq!(rgba(&webp), rgba(&webp_of_jpeg(PHOTO).expect("converted")));
}

#[test]
fn metadata_that_changes_nothing_shown_is_dropped() {
    let png = png(ColorType::Rgb, 61, 40);
    let same = webp_of_png(&png).expect("converted");
    let with_gamma = with_chunk(&png, b"gAMA", &45_455_u32.to_be_bytes());
    for png in [
        with_chunk(&png, b"tEXt", b"Comment\0text"),
        with_chunk(&png, b"pHYs", &[0, 0, 11, 19, 0, 0, 11, 19, 1]),
        with_chunk(&with_gamma, b"sRGB", &[0]),
    ] {
        assert!(webp_of_png(&png).as_ref() == Some(&same));
    }
    let same = webp_of_jpeg(PHOTO).expect("converted");
    for (marker, content) in [
        (0xe1, exif(0x0112, 1)),
        (0xe1, b"http://ns.adobe.com/xap/1.0/\0<x/>".to_vec()),
        (0xed, b"Photoshop 3.0\0".to_vec()),
        (0xfe, b"a comment".to_vec()),
    ] {
        assert!(webp_of_jpeg(&with_segment(PHOTO, marker, &content)).as_ref() == Some(&same));
    }
}

#[test]
fn png_that_would_look_different_is_left_alone() {
    let rgb = png(ColorType::Rgb, 61, 40);
    for (name, content) in [
        (b"acTL", &[0, 0, 0, 1, 0, 0, 0, 0][..]),
        (b"cICP", &[9, 16, 0, 1]),
        (b"eXIf", b"MM\0\x2a\0\0\0\x08\0\0"),
        (b"gAMA", &45_455_u32.to_be_bytes()),
        (b"iCCP", b"broken\0\0"),
        (b"neWc", b""),
    ] {
        let png = with_chunk(&rgb, name, content);
        assert_eq!(webp_of_png(&png), None, "{:?}", name.escape_ascii());
    }
    let mut deep = Info::with_size(20, 20);
    deep.bit_depth = BitDepth::Sixteen;
    deep.color_type = ColorType::Rgb;
    assert_eq!(webp_of_png(&png_of(deep, &[7; 20 * 20 * 6])), None);

    let (grey, other) = (profile(b"GRAY", 200), profile(b"CMYK", 200));
    for (color, profile) in [(ColorType::Grayscale, grey), (ColorType::Rgb, other)] {
        let mut info = Info::with_size(61, 40);
        info.color_type = color;
        info.icc_profile = Some(Cow::Owned(profile));
        assert_eq!(webp_of_png(&png_of(info, &pixels(color, 61, 40))), None);
    }
    let mut wide = Info::with_size(61, 40);
    wide.color_type = ColorType::Rgb;
    wide.source_gamma = Some(ScaledFloat::from_scaled(100_000));
    let wide = png_of(wide, &pixels(ColorType::Rgb, 61, 40));
    assert_eq!(webp_of_png(&wide), None);
}

#[test]
fn jpeg_that_would_look_different_is_left_alone() {
    assert_eq!(webp_of_jpeg(CMYK), None);
    for (name, marker, content) in [
        ("turned", 0xe1, exif(0x0112, 6)),
        ("broken Exif", 0xe1, b"Exif\0\0".to_vec()),
        ("several images", 0xe2, b"MPF\0MM".to_vec()),
        ("a broken profile", 0xe2, b"ICC_PROFILE\0\x01\x02".to_vec()),
        ("credentials", 0xeb, b"JP".to_vec()),
    ] {
        let jpeg = with_segment(PHOTO, marker, &content);
        assert_eq!(webp_of_jpeg(&jpeg), None, "{name}");
    }
    let upright = with_segment(PHOTO, 0xe1, &exif(0x0112, 1));
    let twice = with_segment(&upright, 0xe1, &exif(0x0112, 1));
    assert_eq!(webp_of_jpeg(&twice), None, "which one counts?");
    let trailing = [PHOTO, b"a film"].concat();
    assert_eq!(webp_of_jpeg(&trailing), None);
}

#[test]
fn image_past_a_size_limit_is_left_alone() {
    let blank = |width, height| {
        let mut info = Info::with_size(width, height);
        info.color_type = ColorType::Grayscale;
        png_of(info, &vec![0; (width * height) as usize])
    };
    assert!(webp_of_png(&blank(2048, 2048)).is_some());
    assert_eq!(webp_of_png(&blank(2048, 2049)), None);
    assert!(webp_of_png(&blank(16_383, 1)).is_some());
    assert_eq!(webp_of_png(&blank(16_384, 1)), None);
    // The length of the frame's header is a limit of its own.
    let frame = PHOTO
        .windows(2)
        .position(|pair| pair == [0xff, 0xc0])
        .expect("a frame");
    let mut tall = PHOTO.to_vec();
    tall[frame + 5..frame + 9].copy_from_slice(&[8, 0, 8, 1]);
    assert_eq!(webp_of_jpeg(&tall), None);

    let long = |len: usize| {
        let png = png(ColorType::Rgb, 61, 40);
        let content = vec![b'a'; len - png.len() - 12];
        with_chunk(&png, b"tEXt", &content)
    };
    assert!(webp_of_png(&long(4 * MIB)).is_some());
    assert_eq!(webp_of_png(&long(4 * MIB + 1)), None);

    let with_profile = |len| {
        let mut info = Info::with_size(61, 40);
        info.color_type = ColorType::Rgb;
        info.icc_profile = Some(Cow::Owned(profile(b"RGB ", len)));
        png_of(info, &pixels(ColorType::Rgb, 61, 40))
    };
    assert!(webp_of_png(&with_profile(64 * 1024)).is_some());
    assert_eq!(webp_of_png(&with_profile(64 * 1024 + 1)), None);
}

/// Each scan costs time for all pixels.
#[test]
fn jpeg_of_too_many_scans_is_left_alone() {
    let starts: Vec<usize> = (0..PROGRESSIVE.len() - 1)
        .filter(|at| PROGRESSIVE[*at..].starts_with(&[0xff, 0xda]))
        .collect();
    let marker_after = |from: usize| {
        let is_marker = |at: &usize| PROGRESSIVE[*at] == 0xff && PROGRESSIVE[at + 1] != 0;
        (from + 2..PROGRESSIVE.len()).find(is_marker).expect("EOI")
    };
    let (first, end) = (starts[0], marker_after(starts[0]));
    let of_scans = |scans: usize| {
        let again = PROGRESSIVE[first..end].repeat(scans - starts.len());
        [&PROGRESSIVE[..first], &again, &PROGRESSIVE[first..]].concat()
    };
    assert!(webp_of_jpeg(&of_scans(32)).is_some());
    assert_eq!(webp_of_jpeg(&of_scans(33)), None);
}

#[test]
fn image_that_is_incomplete_is_left_alone() {
    let png = png(ColorType::Rgba, 20, 20);
    for len in 0..png.len() {
        assert_eq!(webp_of_png(&png[..len]), None, "{len}");
    }
    for jpeg in [PHOTO, PROGRESSIVE] {
        for len in (0..jpeg.len()).step_by(7) {
            assert_eq!(webp_of_jpeg(&jpeg[..len]), None, "{len}");
        }
    }
    assert_eq!(webp_of_png(PHOTO), None);
    assert_eq!(webp_of_jpeg(&png), None);
}

proptest! {
    /// A panic would be caught, and reported as an error.
    #[test]
    fn malformed_image_never_panics(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let png = png(ColorType::Rgba, 20, 20);
        let turned = with_segment(PROGRESSIVE, 0xe1, &exif(0x8769, 26));
        for (image, format) in [
            (&png[..], ImageFormat::Png),
            (PHOTO, ImageFormat::Jpeg),
            (&turned, ImageFormat::Jpeg),
        ] {
            let mut image = image.to_vec();
            for (at, byte) in &changes {
                let at = at.index(image.len());
                image[at] = *byte;
            }
            let _ = to_webp(&image, format);
        }
    }
}
