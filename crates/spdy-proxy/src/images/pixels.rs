//! A decoded image.

use crate::images::limits::MAX_PROFILE_BYTES;

/// A decoded image of 8 bits a channel.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Pixels {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Four bytes a pixel with `has_alpha`, else three; row by row.
    pub(super) bytes: Vec<u8>,
    pub(super) has_alpha: bool,
    /// The ICC profile of the colours; `None` for sRGB.
    pub(super) profile: Option<Vec<u8>>,
}

/// Whether `profile` may be attached to RGB pixels: its header names the colour space at byte 16 (ICC.1:2022 §7.2).
pub(super) fn is_rgb_profile(profile: &[u8]) -> bool {
    profile.len() <= MAX_PROFILE_BYTES && profile.get(16..20) == Some(b"RGB ")
}

/// RGB pixels of grey ones with `channels` bytes each, the first of which is the grey; the second is alpha.
pub(super) fn rgb_of_grey(grey: &[u8], has_alpha: bool) -> Vec<u8> {
    match has_alpha {
        false => grey.iter().flat_map(|&level| [level; 3]).collect(),
        true => {
            let (pixels, _) = grey.as_chunks();
            let rgba = |&[level, alpha]: &[u8; 2]| [level, level, level, alpha];
            pixels.iter().flat_map(rgba).collect()
        }
    }
}
