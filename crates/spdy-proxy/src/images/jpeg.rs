//! Decodes JPEG images that are shown the same as WebP, except for the loss.

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use crate::images::exif;
use crate::images::limits::{MAX_SIDE, is_size_allowed};
use crate::images::pixels::{Pixels, is_rgb_profile};

/// Scans of a progressive image: each costs time for all pixels. Encoders write about ten.
const MAX_SCANS: usize = 32;

/// The pixels of `image`; `None` if it is malformed, past a limit, or WebP cannot show it the same.
pub(super) fn decode(image: &[u8]) -> Option<Pixels> {
    let metadata = Metadata::read(image)?;
    let options = DecoderOptions::new_safe()
        .jpeg_set_out_colorspace(ColorSpace::RGB)
        .jpeg_set_max_scans(MAX_SCANS)
        .set_max_width(MAX_SIDE)
        .set_max_height(MAX_SIDE)
        .set_strict_mode(true);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(image), options);
    decoder.decode_headers().ok()?;
    let info = decoder.info()?;
    if !is_size_allowed(info.width.into(), info.height.into()) {
        return None;
    }
    let (width, height) = (info.width.into(), info.height.into());
    if metadata
        .exif
        .is_some_and(|exif| !exif::is_plain(exif, width, height))
    {
        return None;
    }
    let profile = decoder.icc_profile();
    let is_profile_kept = match (&profile, decoder.input_colorspace()?) {
        (Some(profile), ColorSpace::YCbCr | ColorSpace::RGB) => is_rgb_profile(profile),
        // If it has a profile, it cannot be read.
        (None, ColorSpace::YCbCr | ColorSpace::RGB | ColorSpace::Luma) => !metadata.has_profile,
        _ => false, // CMYK, and grey with a profile
    };
    if !is_profile_kept {
        return None;
    }
    Some(Pixels {
        width,
        height,
        bytes: decoder.decode().ok()?,
        has_alpha: false,
        profile,
    })
}

/// The metadata in the segments before the first scan.
#[derive(Debug, Default)]
struct Metadata<'a> {
    exif: Option<&'a [u8]>,
    has_profile: bool,
}

impl<'a> Metadata<'a> {
    /// `None` if a segment is malformed or may change what is shown, such as a second image for more brightness.
    fn read(image: &'a [u8]) -> Option<Self> {
        if !image.ends_with(b"\xff\xd9") {
            return None; // incomplete, or more than an image
        }
        let mut metadata = Self::default();
        let mut rest = image.strip_prefix(b"\xff\xd8")?;
        loop {
            let (&[0xff, marker], after) = rest.split_first_chunk::<2>()? else {
                return None;
            };
            if marker == 0xff {
                rest = &rest[1..]; // a fill byte
                continue;
            }
            let len = usize::from(u16::from_be_bytes(*after.first_chunk()?));
            let segment = after.get(2..len)?;
            rest = &after[len..];
            match marker {
                0xda => return Some(metadata), // the first scan
                0xe1 if segment.starts_with(b"Exif\0") => {
                    if metadata.exif.is_some() {
                        return None;
                    }
                    metadata.exif = Some(segment.get(6..)?);
                }
                0xe2 if segment.starts_with(b"ICC_PROFILE\0") => metadata.has_profile = true,
                // FlashPix and several images (APP2), and APP3 to APP11, of which some add channels or credentials
                0xe2..=0xeb => return None,
                _ => {} // JFIF, XMP, Photoshop, Adobe, comments, and what decoding needs
            }
        }
    }
}
