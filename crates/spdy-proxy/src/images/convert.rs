//! Converts an image, if it is of a format that the configuration includes.

use serde::Deserialize;

use crate::images::limits::MAX_IMAGE_BYTES;
use crate::images::{jpeg, png, webp};

/// Which stored images are also sent as WebP.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum ImageConversion {
    /// No images.
    #[default]
    Off,
    /// PNG images, with the same pixels.
    Lossless,
    /// PNG images with the same pixels, and JPEG images at quality 80.
    Lossy,
}

/// The format of a stored image that may be converted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ImageFormat {
    /// PNG.
    Png,
    /// JPEG.
    Jpeg,
}

impl ImageFormat {
    /// The format with this media type, if `conversion` includes it.
    pub(crate) fn of(media_type: &str, conversion: ImageConversion) -> Option<Self> {
        let essence = media_type.split(';').next().unwrap_or_default().trim();
        let is = |name: &str| essence.eq_ignore_ascii_case(name);
        match conversion {
            ImageConversion::Off => None,
            ImageConversion::Lossless | ImageConversion::Lossy if is("image/png") => {
                Some(Self::Png)
            }
            ImageConversion::Lossy if is("image/jpeg") => Some(Self::Jpeg),
            ImageConversion::Lossless | ImageConversion::Lossy => None,
        }
    }

    /// Its media type.
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
        }
    }
}

/// `image` as WebP, of a JPEG image with loss; `None` if it is malformed, past a limit, or would not look the same.
#[must_use]
pub fn to_webp(image: &[u8], format: ImageFormat) -> Option<Vec<u8>> {
    if image.len() as u64 > MAX_IMAGE_BYTES {
        return None;
    }
    match format {
        ImageFormat::Png => webp::encode_lossless(&png::decode(image)?),
        ImageFormat::Jpeg => webp::encode_lossy(&jpeg::decode(image)?),
    }
}
