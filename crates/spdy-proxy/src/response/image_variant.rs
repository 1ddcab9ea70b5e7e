//! Decides which stored images may be sent as WebP, and to which clients.

use http::{HeaderMap, HeaderValue, StatusCode, header, response};
use spdy_cache::stored::Stored;
use spdy_rewrite::response::rewritten_head;

use crate::body::content_coding::weight;
use crate::cache::public_response::is_public;
use crate::images::convert::{ImageConversion, ImageFormat};
use crate::images::limits::{MAX_IMAGE_BYTES, MIN_IMAGE_BYTES};
use crate::response::respond;

const WEBP: &str = "image/webp";

/// The format of `stored`, whose body has `len` bytes if that is known, if it may be sent as WebP. All its responses get `Vary: Accept`.
///
/// A download stays as it is (`Content-Disposition`), and so does an image whose origin decides by `Accept` itself.
pub(crate) fn convertible(
    conversion: ImageConversion,
    stored: &Stored,
    len: Option<u64>,
) -> Option<ImageFormat> {
    if conversion == ImageConversion::Off || stored.status() != StatusCode::OK {
        return None;
    }
    let headers = stored.served();
    let media_type = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    let format = ImageFormat::of(media_type, conversion)?;
    let is_length_allowed =
        len.is_none_or(|len| (MIN_IMAGE_BYTES..=MAX_IMAGE_BYTES).contains(&len));
    let may = is_length_allowed
        && !headers.contains_key(header::CONTENT_ENCODING)
        && !headers.contains_key(header::CONTENT_DISPOSITION)
        && !rewritten_head::has_no_transform(headers)
        && is_public(stored)
        && stored.selecting_names().all(|name| *name != header::ACCEPT);
    may.then_some(format)
}

/// Whether the client of a request with `headers` loads an image and prefers WebP to `format`.
///
/// Only browsers that can decode WebP list it. They list `text/html` too if the user opens or downloads the image: a file gets the name and the
/// type that its link promises.
pub(crate) fn accepts_webp(headers: &HeaderMap, format: ImageFormat) -> bool {
    let (mut webp, mut original) = (None, None);
    for field in headers.get_all(header::ACCEPT) {
        for item in field.to_str().unwrap_or_default().split(',') {
            let mut parts = item.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight = parts.find_map(weight).unwrap_or(1.0);
            let is = |media_type: &str| name.eq_ignore_ascii_case(media_type);
            if is("text/html") {
                return false;
            } else if is(WEBP) {
                webp = Some(weight);
            } else if is(format.media_type()) {
                original = Some(weight);
            }
        }
    }
    let original = original.unwrap_or_default();
    webp.is_some_and(|webp| webp > 0.0 && webp >= original)
}

/// Removes a range from a request with `headers` for an image if the range depends on a date. The client may have a part of a WebP image,
/// which has the date of the original: so it is no strong validator (RFC 9110 §8.8.2.2). The tag of a WebP image is weak and never allows a
/// range.
pub(crate) fn remove_dated_range(conversion: ImageConversion, headers: &mut HeaderMap) {
    let is_dated = |condition: &HeaderValue| !condition.as_bytes().ends_with(b"\"");
    if conversion != ImageConversion::Off
        && headers.get(header::IF_RANGE).is_some_and(is_dated)
        && [ImageFormat::Png, ImageFormat::Jpeg]
            .iter()
            .any(|format| accepts_webp(headers, *format))
    {
        headers.remove(header::IF_RANGE);
        headers.remove(header::RANGE);
    }
}

/// Makes `head` that of a WebP image of `len` bytes.
pub(super) fn set_webp(head: &mut response::Parts, len: u64) {
    let media_type = HeaderValue::from_static(WEBP);
    head.headers.insert(header::CONTENT_TYPE, media_type);
    respond::set_other_bytes(head, Some(len));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn webp_is_for_clients_that_load_an_image_and_prefer_it() {
        for (accept, expected) in [
            // Chromium, Firefox, Safari: an image
            (
                "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
                true,
            ),
            (
                "image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5",
                true,
            ),
            (
                "image/webp,image/avif,image/jxl,video/*;q=0.8,image/png,image/*;q=0.8",
                true,
            ),
            // a page, or an image in a tab
            (
                "text/html,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
                false,
            ),
            ("*/*", false),
            ("image/*", false),
            ("", false),
            ("image/webp;q=0, image/png", false),
            ("image/webp;q=0.5, image/png", false),
            ("IMAGE/WebP ; Q=0.5 , image/png;q=0.4", true),
        ] {
            let value = HeaderValue::from_static(accept);
            let headers = HeaderMap::from_iter([(header::ACCEPT, value)]);
            assert_eq!(
                accepts_webp(&headers, ImageFormat::Png),
                expected,
                "{accept:?}"
            );
        }
        assert!(!accepts_webp(&HeaderMap::new(), ImageFormat::Png));
    }
}
