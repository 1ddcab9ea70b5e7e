//! Chromium gets a PNG image as WebP, with the same pixels.

use serde_json::{Value, json};
use spdy_testkit::wait::until;

use crate::support::accelerator::accelerated_site::{AcceleratedSite, Setting};
use crate::support::clients::chromium::{Chromium, Viewport};
use crate::support::origins::pictures::png;
use crate::support::origins::scripted::{Origins, complete_response};
use crate::support::peers::{is_installed, peers_enabled, require};

const SITE: &str = "www.site.test";
const WIDTH: u32 = 600;
const HEIGHT: u32 = 400;
const COLOUR: [u8; 3] = [201, 87, 33];

/// Transfers of the image, its size and a pixel of it.
const LOOK: &str = "(() => {\
    const [image] = document.images;\
    const canvas = document.createElement('canvas');\
    const drawing = canvas.getContext('2d');\
    drawing.drawImage(image, 0, 0);\
    const [{encodedBodySize}] = performance.getEntriesByName(image.src);\
    return {bytes: encodedBodySize, size: [image.naturalWidth, image.naturalHeight],\
        pixel: [...drawing.getImageData(100, 100, 1, 1).data]};\
})()";

#[test]
fn chromium_shows_the_webp_of_a_png_with_the_same_pixels() {
    if !peers_enabled() {
        return;
    }
    require("Chromium", is_installed("chromium"));
    let original = png(WIDTH, HEIGHT, COLOUR);
    let len = original.len();
    assert!(len > 1024, "shorter images are not converted");
    let origins = Origins::start(&[(SITE, "https")], move |request, _| {
        let (kind, body) = match &*request.target {
            "/" => ("text/html", &b"<!doctype html><img src=/a.png>"[..]),
            _ => ("image/png", &original[..]),
        };
        let head = format!(
            "200 OK\r\nContent-Type: {kind}\r\nX-Content-Type-Options: nosniff\r\nCache-Control: max-age=3600\r\n"
        );
        complete_response(&head, body)
    });
    let setting = Setting {
        top: "[cache]\nimages = 'lossless'",
        ..Setting::default()
    };
    let site = AcceleratedSite::start(&origins, &setting);
    let mut browser = Chromium::start_with(&[
        format!("--host-resolver-rules=MAP {SITE}:443 {}", site.tls),
        format!(
            "--ignore-certificate-errors-spki-list={}",
            origins.certificates.pins
        ),
        "--disable-quic".to_owned(),
    ]);
    let look = Viewport {
        width: 800,
        dark: false,
    };
    let mut seen = Value::Null;
    until("Chromium gets the WebP image", || {
        browser.clear_cache();
        browser.open(&format!("https://{SITE}/"), look);
        seen = browser.evaluate(LOOK);
        let bytes = seen["bytes"].as_u64().expect("a number");
        bytes < len as u64 / 2
    });
    let [red, green, blue] = COLOUR;
    assert_eq!(seen["size"], json!([WIDTH, HEIGHT]));
    assert_eq!(seen["pixel"], json!([red, green, blue, 255]));
}
