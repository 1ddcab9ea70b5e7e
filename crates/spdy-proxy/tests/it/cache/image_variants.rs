//! Stored images are sent as WebP to clients that accept it, once they are requested again.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header, response};
use png::ColorType;
use spdy::body::Body;
use spdy_proxy::images::convert::ImageConversion;

use super::recompression::{field, get, send};
use crate::images::png;
use crate::support::fields::PNG;
use crate::support::proxied_site::{before, get_proxied, load};
use crate::support::stage::{Stage, request};
use crate::support::wire::Between;
use crate::support::{Origin, pages, respond};

type Field = (&'static str, &'static str);

/// What browsers send for an image.
const IMAGE: Field = ("accept", "image/avif,image/webp,image/*,*/*;q=0.8");
const DATE: &str = "Tue, 01 Jan 2019 00:00:00 GMT";
const PHOTO: &[u8] = include_bytes!("../../images/photo.jpg");

fn logo() -> Bytes {
    png(ColorType::Rgba, 61, 40).into()
}

fn noise() -> Bytes {
    let mut state = 1_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as u8
    };
    let pixels: Vec<u8> = (0..40 * 40 * 3).map(|_| next()).collect();
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, 40, 40);
    encoder.set_color(ColorType::Rgb);
    let mut writer = encoder.write_header().expect("a Vec");
    writer.write_image_data(&pixels).expect("a Vec");
    drop(writer);
    file.into()
}

fn stage(images: ImageConversion) -> Stage {
    let mut between = Between::start("---[site.rewrite]\n");
    let started = between.proxy.start_recompression(true, images);
    started.expect("a thread");
    between.serve_origin(|request: Request<Body>| {
        let path = request.uri().path();
        let (kind, body) = match path {
            "/photo.jpg" => ("image/jpeg", Bytes::from_static(PHOTO)),
            "/noise.png" => ("image/png", noise()),
            "/broken.png" => ("image/png", logo().slice(..logo().len() - 20)),
            "/small.png" => ("image/png", png(ColorType::Grayscale, 20, 20).into()),
            _ => ("Image/PNG", logo()),
        };
        let control = match path {
            "/fixed.png" => "max-age=31536000, no-transform",
            "/soon.png" => "max-age=60",
            "/private.png" => "private, max-age=31536000",
            _ => "max-age=31536000",
        };
        let response = Response::builder()
            .header(header::CONTENT_TYPE, kind)
            .header(header::CACHE_CONTROL, control)
            .header(header::ETAG, "\"1\"")
            .header(header::LAST_MODIFIED, DATE)
            .header("repr-digest", "sha-256=:AAAA:");
        let response = match path {
            "/download.png" => response.header(header::CONTENT_DISPOSITION, "attachment"),
            "/negotiated.png" => response.header(header::VARY, "Accept"),
            "/for-cookie.png" => response.header(header::VARY, "Cookie"),
            _ => response,
        };
        std::future::ready(response.body(Body::full(body)).expect("a response"))
    });
    Stage {
        between,
        visitors: 0,
    }
}

/// The response to a request for `target`, once that is a WebP image.
async fn webp(stage: &Stage, target: &str) -> (response::Parts, Bytes) {
    loop {
        let (head, body) = get(stage, target, &[IMAGE]).await;
        if field(&head, header::CONTENT_TYPE) == "image/webp" {
            return (head, body);
        }
    }
}

#[tokio::test]
async fn image_that_is_requested_again_is_sent_as_webp() {
    let stage = stage(ImageConversion::Lossless);
    for _ in 0..2 {
        let (head, body) = get(&stage, "/a.png", &[IMAGE]).await;
        assert_eq!(field(&head, header::CONTENT_TYPE), "Image/PNG");
        assert_eq!(field(&head, header::ETAG), "\"1\"");
        assert_eq!(
            field(&head, header::VARY),
            "accept",
            "for caches on the way"
        );
        assert_eq!(body, logo());
    }
    let (head, body) = webp(&stage, "/a.png").await;
    assert!(body.len() < logo().len());
    assert!(body.starts_with(b"RIFF"));
    assert_eq!(field(&head, header::CONTENT_LENGTH), body.len().to_string());
    assert_eq!(field(&head, header::ETAG), "W/\"1\"", "other bytes");
    assert_eq!(field(&head, header::VARY), "accept");
    assert_eq!(head.headers.get("repr-digest"), None);
    assert_eq!(head.headers.get(header::CONTENT_ENCODING), None);

    // A HEAD has the same head.
    let mut asked = request("/a.png", &[IMAGE]);
    *asked.method_mut() = Method::HEAD;
    let (of_head, empty) = send(&stage, asked).await;
    for name in [
        header::CONTENT_TYPE,
        header::CONTENT_LENGTH,
        header::ETAG,
        header::VARY,
    ] {
        assert_eq!(field(&of_head, name.clone()), field(&head, name));
    }
    assert_eq!(empty.len(), 0);

    // Both validators are valid for both.
    for tag in ["W/\"1\"", "\"1\""] {
        let (head, body) = get(&stage, "/a.png", &[IMAGE, ("if-none-match", tag)]).await;
        assert_eq!((head.status, body.len()), (StatusCode::NOT_MODIFIED, 0));
        assert_eq!(field(&head, header::ETAG), "W/\"1\"");
        assert_eq!(field(&head, header::VARY), "accept");
        assert_eq!(
            field(&head, header::CONTENT_TYPE),
            "",
            "the client keeps its own"
        );
    }
    // Other clients, and a user who opens or downloads the image, get what the origin has sent.
    for accept in ["*/*", "image/*", "text/html,image/webp,*/*;q=0.8"] {
        let (head, body) = get(&stage, "/a.png", &[("accept", accept)]).await;
        assert_eq!(field(&head, header::CONTENT_TYPE), "Image/PNG");
        assert_eq!(field(&head, header::ETAG), "\"1\"");
        assert_eq!(field(&head, header::VARY), "accept");
        assert_eq!(head.headers["repr-digest"], "sha-256=:AAAA:");
        assert_eq!(body, logo());
    }
}

/// A client that holds a part of a WebP image never gets a part of the original for the rest.
#[tokio::test]
async fn range_is_one_of_the_original() {
    let stage = stage(ImageConversion::Lossless);
    let (_, whole) = webp(&stage, "/a.png").await;
    let range = ("range", "bytes=0-9");
    for fields in [&[IMAGE, range][..], &[IMAGE, range, ("if-range", "\"1\"")]] {
        let (head, body) = get(&stage, "/a.png", fields).await;
        assert_eq!(head.status, StatusCode::PARTIAL_CONTENT);
        assert_eq!(field(&head, header::CONTENT_TYPE), "Image/PNG");
        assert_eq!(field(&head, header::ETAG), "\"1\"");
        assert_eq!(field(&head, header::VARY), "accept");
        assert_eq!(body, logo()[..10]);
    }
    for condition in ["W/\"1\"", DATE] {
        let (head, body) = get(&stage, "/a.png", &[IMAGE, range, ("if-range", condition)]).await;
        assert_eq!(head.status, StatusCode::OK, "{condition}");
        assert_eq!(body, whole);
    }
    // This client has no part of a WebP image.
    let (head, body) = get(&stage, "/a.png", &[range, ("if-range", DATE)]).await;
    assert_eq!(head.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(body, logo()[..10]);
    // Before the image is stored again, the same holds.
    let (head, body) = get(&stage, "/b.png", &[IMAGE, range, ("if-range", DATE)]).await;
    assert_eq!((head.status, body), (StatusCode::OK, logo()));
}

#[tokio::test]
async fn only_lasting_public_images_are_converted() {
    let stage = stage(ImageConversion::Lossless);
    for _ in 0..3 {
        for (target, vary) in [
            ("/fixed.png", ""),
            ("/private.png", ""),
            ("/download.png", ""),
            ("/negotiated.png", "Accept"),
            ("/for-cookie.png", "Cookie"),
            ("/small.png", ""),
            ("/photo.jpg", ""),
            ("/soon.png", "accept"),
            ("/broken.png", "accept"),
            ("/noise.png", "accept"),
        ] {
            let (head, _) = get(&stage, target, &[IMAGE]).await;
            assert_ne!(field(&head, header::CONTENT_TYPE), "image/webp", "{target}");
            assert_eq!(field(&head, header::VARY), vary, "{target}");
        }
        // The thread has done all before this one.
        webp(&stage, "/a.png").await;
    }
}

#[tokio::test]
async fn jpeg_is_converted_only_if_loss_is_allowed() {
    let stage = stage(ImageConversion::Lossy);
    let (head, body) = webp(&stage, "/photo.jpg").await;
    assert!(body.len() * 8 <= PHOTO.len() * 7);
    assert_eq!(field(&head, header::VARY), "accept");
    webp(&stage, "/a.png").await;
}

#[tokio::test]
async fn by_default_images_are_sent_unchanged() {
    let stage = stage(ImageConversion::default());
    for _ in 0..3 {
        for target in ["/a.png", "/photo.jpg"] {
            let (head, _) = get(&stage, target, &[IMAGE]).await;
            assert_ne!(field(&head, header::CONTENT_TYPE), "image/webp");
            assert_eq!(field(&head, header::VARY), "");
            assert_eq!(field(&head, header::ETAG), "\"1\"");
        }
    }
}

#[tokio::test]
async fn image_of_another_host_is_converted_too() {
    let own = Origin::start(pages(&[]));
    let other = Origin::start(|_| {
        let fields = [PNG, ("cache-control", "max-age=3600")];
        std::future::ready(respond(&fields, logo()))
    });
    let proxy = before(&own, &other);
    let started = proxy.start_recompression(false, ImageConversion::Lossless);
    started.expect("a thread");
    let fields = [&load("image")[..], &[IMAGE]].concat();
    let webp = loop {
        let response = get_proxied(&proxy, &other, "/logo.png", &fields).await;
        assert_eq!(response.status, StatusCode::OK);
        let mut vary = response.headers.get_all(header::VARY).iter();
        assert!(vary.any(|name| name == "accept"), "{response:?}");
        if response.field("content-type") == "image/webp" {
            break response;
        }
    };
    assert!(webp.body.expect("a whole body").starts_with(b"RIFF"));
    let original = get_proxied(&proxy, &other, "/logo.png", &load("image")).await;
    assert_eq!(original.field("content-type"), "image/png");
    assert_eq!(original.body, Ok(logo()));
}
