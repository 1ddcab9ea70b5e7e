//! Decodes PNG images whose pixels WebP can represent exactly.

use std::io::Cursor;

use png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use crate::images::limits::is_size_allowed;
use crate::images::pixels::{Pixels, is_rgb_profile, rgb_of_grey};

const SIGNATURE: &[u8] = b"\x89PNG\r\n\x1a\n";
/// Memory of the decoder in addition to its output, bytes.
const MAX_DECODER_BYTES: usize = 1024 * 1024;

/// The chunks of a still image that is shown in sRGB or by its ICC profile. Another chunk may change what is shown: `acTL` (animation),
/// `eXIf` (orientation), `cICP` and those of later editions.
const KNOWN_CHUNKS: [&[u8; 4]; 18] = [
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"sRGB", b"iCCP", b"gAMA", b"cHRM", b"sBIT",
    b"bKGD", b"hIST", b"pHYs", b"sPLT", b"tEXt", b"zTXt", b"iTXt", b"tIME",
];

/// The pixels of `image`; `None` if it is malformed, past a limit, or WebP cannot represent it exactly.
pub(super) fn decode(image: &[u8]) -> Option<Pixels> {
    let chunks = chunks(image)?;
    let has = |name: &[u8; 4]| chunks.contains(&name);
    if !chunks.iter().all(|name| KNOWN_CHUNKS.contains(name)) {
        return None;
    }
    // `iCCP` and `sRGB` override these (PNG third edition §4.3). Alone, they change the colours.
    if (has(b"gAMA") || has(b"cHRM")) && !has(b"iCCP") && !has(b"sRGB") {
        return None;
    }
    let limits = Limits {
        bytes: MAX_DECODER_BYTES,
    };
    let mut decoder = Decoder::new_with_limits(Cursor::new(image), limits);
    decoder.set_transformations(Transformations::EXPAND);
    decoder.set_ignore_text_chunk(true);
    let mut reader = decoder.read_info().ok()?;
    let info = reader.info();
    let (width, height) = (info.width, info.height);
    if !is_size_allowed(width as usize, height as usize) || info.bit_depth == BitDepth::Sixteen {
        return None;
    }
    let is_grey = matches!(
        info.color_type,
        ColorType::Grayscale | ColorType::GrayscaleAlpha
    );
    let profile = info.icc_profile.as_ref().map(|profile| profile.to_vec());
    let is_profile_kept = match &profile {
        Some(profile) => is_rgb_profile(profile) && !is_grey,
        None => !has(b"iCCP"), // one that cannot be read
    };
    if !is_profile_kept {
        return None;
    }
    let mut bytes = vec![0; reader.output_buffer_size()?];
    let frame = reader.next_frame(&mut bytes).ok()?;
    reader.finish().ok()?; // an image without its end is shown in part
    bytes.truncate(frame.buffer_size());
    let has_alpha = matches!(
        frame.color_type,
        ColorType::Rgba | ColorType::GrayscaleAlpha
    );
    let bytes = match frame.color_type {
        ColorType::Rgb | ColorType::Rgba => bytes,
        ColorType::Grayscale | ColorType::GrayscaleAlpha => rgb_of_grey(&bytes, has_alpha),
        ColorType::Indexed => return None, // expanded above
    };
    Some(Pixels {
        width,
        height,
        bytes,
        has_alpha,
        profile,
    })
}

/// The names of all chunks up to `IEND`.
fn chunks(image: &[u8]) -> Option<Vec<&[u8; 4]>> {
    let mut rest = image.strip_prefix(SIGNATURE)?;
    let mut names = Vec::new();
    loop {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (name, after) = after.split_first_chunk::<4>()?;
        let len = u32::from_be_bytes(*len) as usize;
        rest = after.get(len..)?.get(4..)?; // a checksum ends it
        names.push(name);
        if name == b"IEND" {
            return Some(names);
        }
    }
}
