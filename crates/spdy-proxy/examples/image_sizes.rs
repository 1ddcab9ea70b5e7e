//! Prints what `cache.images` saves on the images of recorded pages.
//!
//! ```text
//! cargo run --release -p spdy-proxy --example image_sizes -- portal page.replica
//! ```
//!
//! For each recording and format: images, their bytes, how many become smaller, the bytes that are sent then, and the time of all conversions.

use std::time::{Duration, Instant};

use spdy_page::head::Head;
use spdy_proxy::images::convert::{ImageFormat, to_webp};
use spdy_proxy::images::limits::{MAX_IMAGE_BYTES, MIN_IMAGE_BYTES};

/// An image is sent as WebP if that saves this part of its bytes.
const MIN_SAVED_PART: u64 = 8;

#[expect(clippy::print_stdout, reason = "it is the output")]
fn main() -> Result<(), spdy_page::open::OpenError> {
    println!("recording format images bytes smaller sent ms");
    for name in std::env::args().skip(1) {
        let replica = spdy_page::open::open(&name)?.replica;
        for (media_type, format) in [
            ("image/png", ImageFormat::Png),
            ("image/jpeg", ImageFormat::Jpeg),
        ] {
            let (mut images, mut bytes, mut smaller, mut sent) = (0, 0, 0, 0);
            let mut took = Duration::ZERO;
            for exchange in &replica.exchanges {
                let head = Head::parse(&exchange.response_head);
                let is_image = head.and_then(|head| head.value("content-type")) == Some(media_type);
                if !is_image || !exchange.body_is_real {
                    continue;
                }
                let len = exchange.body.len() as u64;
                let began = Instant::now();
                let webp = match (MIN_IMAGE_BYTES..=MAX_IMAGE_BYTES).contains(&len) {
                    true => to_webp(&exchange.body, format),
                    false => None,
                };
                took += began.elapsed();
                let webp = webp.map(|webp| webp.len() as u64);
                let webp = webp.filter(|webp| *webp <= len - len / MIN_SAVED_PART);
                images += 1;
                bytes += len;
                smaller += u64::from(webp.is_some());
                sent += webp.unwrap_or(len);
            }
            if images > 0 {
                let ms = took.as_millis();
                println!("{name} {media_type} {images} {bytes} {smaller} {sent} {ms}");
            }
        }
    }
    Ok(())
}
