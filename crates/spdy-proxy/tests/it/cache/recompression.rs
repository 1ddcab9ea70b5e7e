//! Texts that their origin has compressed are compressed again, smaller, once they are requested again.

use std::io::Write;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::{Method, Request, Response, StatusCode, header, response};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_net::protocol::Protocol;
use spdy_proxy::images::convert::ImageConversion;

use crate::support::stage::{Stage, networks, request};
use crate::support::wire::Between;

fn script() -> Vec<u8> {
    let line = |n: usize| {
        format!(
            "export const f{} = (a) => a * {};\n",
            n * 7919 % 1009,
            n * n
        )
    };
    (0..1000).flat_map(|n| line(n).into_bytes()).collect()
}

fn gzipped() -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&script()).expect("a Vec");
    encoder.finish().expect("a Vec").into()
}

fn stage() -> Stage {
    let mut between = Between::start("---[site.rewrite]\n");
    let started = between
        .proxy
        .start_recompression(true, ImageConversion::Off);
    started.expect("a thread");
    between.serve_origin(|request: Request<Body>| {
        let (kind, control) = match request.uri().path() {
            "/fixed.js" => ("text/javascript", "max-age=31536000, no-transform"),
            "/image.png" => ("image/png", "max-age=31536000"),
            "/soon.js" => ("text/javascript", "max-age=60"),
            _ => ("text/javascript", "max-age=31536000"),
        };
        let vary = match request.uri().path() {
            "/without-vary.js" => None,
            "/for-cookie.js" => Some("accept-encoding, cookie"),
            _ => Some("accept-encoding"),
        };
        let mut response = Response::builder()
            .header(header::CONTENT_TYPE, kind)
            .header(header::CACHE_CONTROL, control)
            .header(header::CONTENT_ENCODING, "gzip")
            .header(header::ETAG, "\"1\"");
        if let Some(vary) = vary {
            response = response.header(header::VARY, vary);
        }
        let response = response.body(Body::full(gzipped()));
        std::future::ready(response.expect("a response"))
    });
    Stage {
        between,
        visitors: 0,
    }
}

pub(super) async fn get(
    stage: &Stage,
    target: &str,
    fields: &[(&'static str, &'static str)],
) -> (response::Parts, Bytes) {
    send(stage, request(target, fields)).await
}

pub(super) async fn send(stage: &Stage, request: Request<Body>) -> (response::Parts, Bytes) {
    let from = networks(1).next().expect("a network");
    let client = stage.connect(from, Protocol::Http1, false).await;
    let sending = client.send(request, Priority::HIGHEST);
    let (response, _) = stage.between.wait(sending).await;
    let (head, body) = response.expect("a response").into_parts();
    let body = body.collect_up_to(1 << 20).await.expect("the body");
    // A response is stored shortly after its reader has it.
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    (head, body)
}

pub(super) fn field(head: &response::Parts, name: header::HeaderName) -> &str {
    let value = head.headers.get(name);
    value.map_or("", |value| value.to_str().expect("ASCII"))
}

const BROTLI: (&str, &str) = ("accept-encoding", "gzip, br");

#[tokio::test]
async fn script_that_is_requested_again_is_sent_smaller() {
    let stage = stage();
    for _ in 0..2 {
        let (head, body) = get(&stage, "/a.js", &[BROTLI]).await;
        assert_eq!(field(&head, header::CONTENT_ENCODING), "gzip");
        assert_eq!(field(&head, header::ETAG), "\"1\"");
        assert_eq!(body, gzipped());
    }
    let (head, body) = loop {
        let (head, body) = get(&stage, "/a.js", &[BROTLI]).await;
        if field(&head, header::CONTENT_ENCODING) == "br" {
            break (head, body);
        }
    };
    assert!(body.len() < gzipped().len());
    assert_eq!(field(&head, header::CONTENT_LENGTH), body.len().to_string());
    assert_eq!(
        field(&head, header::ETAG),
        "W/\"1\"",
        "other bytes, the same text"
    );
    assert_eq!(field(&head, header::VARY), "accept-encoding");
    let mut text = Vec::new();
    brotli::BrotliDecompress(&mut &body[..], &mut text).expect("valid Brotli");
    assert_eq!(text, script());

    // A HEAD has the same head.
    let mut asked = request("/a.js", &[BROTLI]);
    *asked.method_mut() = Method::HEAD;
    let (of_head, empty) = send(&stage, asked).await;
    for name in [
        header::CONTENT_ENCODING,
        header::CONTENT_LENGTH,
        header::ETAG,
        header::VARY,
    ] {
        assert_eq!(field(&of_head, name.clone()), field(&head, name));
    }
    assert_eq!(empty.len(), 0);

    // Its validator is valid, and a range is one of the origin's bytes.
    let known = [BROTLI, ("if-none-match", "W/\"1\"")];
    let (head, body) = get(&stage, "/a.js", &known).await;
    assert_eq!((head.status, body.len()), (StatusCode::NOT_MODIFIED, 0));
    assert_eq!(field(&head, header::ETAG), "W/\"1\"");
    let (head, body) = get(&stage, "/a.js", &[BROTLI, ("range", "bytes=0-9")]).await;
    assert_eq!(head.status, StatusCode::PARTIAL_CONTENT);
    assert_eq!(field(&head, header::CONTENT_ENCODING), "gzip");
    assert_eq!(field(&head, header::VARY), "accept-encoding");
    assert_eq!(body, gzipped()[..10]);
    // A client without Brotli gets what the origin has sent.
    let (head, body) = get(&stage, "/a.js", &[("accept-encoding", "gzip")]).await;
    assert_eq!(field(&head, header::CONTENT_ENCODING), "gzip");
    assert_eq!(body, gzipped());
}

#[tokio::test]
async fn stored_text_that_may_be_recompressed_varies_for_every_client() {
    let stage = stage();
    get(&stage, "/without-vary.js", &[]).await; // is stored
    let clients: [&[(&str, &str)]; 5] = [
        &[BROTLI],
        &[("accept-encoding", "gzip")],
        &[],
        &[("accept-encoding", "gzip"), ("if-none-match", "\"1\"")],
        &[("range", "bytes=0-9")],
    ];
    for fields in clients {
        let (head, _) = get(&stage, "/without-vary.js", fields).await;
        assert_eq!(field(&head, header::VARY), "accept-encoding", "{fields:?}");
    }
}

#[tokio::test]
async fn only_lasting_public_texts_are_recompressed() {
    let stage = stage();
    for _ in 0..3 {
        for target in ["/fixed.js", "/image.png", "/soon.js", "/for-cookie.js"] {
            let (head, body) = get(&stage, target, &[BROTLI]).await;
            assert_eq!(field(&head, header::CONTENT_ENCODING), "gzip", "{target}");
            assert_eq!(body, gzipped());
        }
        // The thread has done all before this one.
        while field(
            &get(&stage, "/a.js", &[BROTLI]).await.0,
            header::CONTENT_ENCODING,
        ) != "br"
        {}
    }
}
