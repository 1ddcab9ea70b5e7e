//! The limits of images that are converted.

/// The longest image that is converted, bytes.
pub const MAX_IMAGE_BYTES: u64 = 4 * 1024 * 1024;
/// The shortest image that is converted, bytes. A shorter one fits into one packet with its head.
pub const MIN_IMAGE_BYTES: u64 = 1024;
/// The most pixels of an image that is converted. The conversion takes up to 6 s and 170 MB of memory.
pub(super) const MAX_PIXELS: usize = 2048 * 2048;
/// The longest side of a WebP image, pixels.
pub(super) const MAX_SIDE: usize = 16_383;
/// The longest ICC profile that is carried over, bytes.
pub(super) const MAX_PROFILE_BYTES: usize = 64 * 1024;

/// Whether an image of `width` times `height` pixels is within the limits.
pub(super) fn is_size_allowed(width: usize, height: usize) -> bool {
    let is_side_allowed = |side: usize| (1..=MAX_SIDE).contains(&side);
    is_side_allowed(width) && is_side_allowed(height) && width * height <= MAX_PIXELS
}
