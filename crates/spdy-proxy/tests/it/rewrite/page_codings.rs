//! Content codings of rewritten pages, and which responses are compressed.

use http::{Request, StatusCode};
use spdy_proxy::body::content_coding::Coding;

use crate::support::cdn_site::{before, changing, html, other};
use crate::support::fields::{CSS, FRESH, HTML};
use crate::support::{Origin, accelerator_of, get, respond, until};

#[tokio::test]
async fn compressed_page_is_rewritten_and_recompressed_per_client() {
    for origin_coding in [Coding::Gzip, Coding::Zstd, Coding::Brotli] {
        let other = other();
        let text = html(&other).repeat(20);
        let coded = spdy_proxy::body::encoder::encode(&[text.into()], origin_coding);
        let origin = Origin::start(move |_| {
            let coding = ("content-encoding", origin_coding.name());
            let fields = [HTML, FRESH, coding, ("etag", "\"1\"")];
            std::future::ready(respond(&fields, coded.clone()))
        });
        let proxy = before(&origin, &other, "");
        let mut bodies = Vec::new();
        // The first from the arriving response, the others from the stored one.
        for (accept, coding) in [
            ("gzip, br, zstd", "zstd"),
            ("gzip, br, zstd", "br"),
            ("identity", ""),
            ("gzip", "gzip"),
            ("zstd", "zstd"),
            ("br", "br"),
        ] {
            let response = get(&proxy, "/", &[("accept-encoding", accept)]).await;
            assert_eq!(
                response.field("content-encoding"),
                coding,
                "{origin_coding:?} {accept}"
            );
            assert_eq!(response.field("vary"), "accept-encoding");
            let body = response.body.expect("the body is complete");
            let spoken = match coding {
                "br" => Coding::Brotli,
                "gzip" => Coding::Gzip,
                "zstd" => Coding::Zstd,
                _ => Coding::Identity,
            };
            let mut decoder = spdy_proxy::body::decoder::Decoder::new(spoken, 1 << 20);
            let mut text = decoder
                .write(&body)
                .expect("the body is valid in its coding");
            text.extend(decoder.finish().expect("the body is complete"));
            bodies.push(String::from_utf8(text).expect("the text is UTF-8"));
        }
        assert!(bodies.iter().all(|body| *body == bodies[0]));
        assert!(bodies[0].contains("/.spdy/1/-/p/cdn.test~"));
        assert_eq!(
            origin.times("/"),
            1,
            "one coding is stored, the others are made from it"
        );
    }
}

/// It broke off where browsers do not: behind what was compressed stands what a script printed last, or nothing was printed at all.
#[tokio::test]
async fn bytes_after_gzip_are_ignored_and_empty_body_is_valid() {
    let sheet = "body { background: url(http://cdn.test/b.png) }";
    let coded = spdy_proxy::body::encoder::encode(&[sheet.into()], Coding::Gzip);
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let gzip = ("content-encoding", "gzip");
        let padded = [&coded[..], b"\n\0\0"].concat();
        std::future::ready(match request.uri().path() {
            "/padded.css" => respond(&[CSS, FRESH, gzip], padded),
            "/padded" => respond(&[HTML, FRESH, gzip], padded),
            "/empty.css" => respond(&[CSS, FRESH, gzip], ""),
            _ => respond(&[HTML, FRESH, gzip], ""),
        })
    });
    let proxy = before(&own, &other(), "");
    for (target, text) in [
        ("/padded.css", "url(http://cdn.test/b.png)"),
        ("/padded", "body { background"),
        ("/empty.css", ""),
        ("/empty", ""),
    ] {
        for _ in 0..2 {
            let response = get(&proxy, target, &[]).await;
            assert_eq!(response.status, StatusCode::OK, "{target}");
            let body = response.body.as_ref().expect("the body is complete");
            let body = String::from_utf8_lossy(body);
            assert!(body.contains(text), "{target}: {body}");
            assert_eq!(text.is_empty(), body.is_empty(), "{target}: {body}");
        }
    }
}

/// Regression: each set of accepted codings caused a revalidation.
#[tokio::test]
async fn stored_page_serves_all_codings_after_304() {
    let other = other();
    let own = changing(html(&other), |nth| match nth {
        0 => vec![("vary", "accept-encoding"), ("cache-control", "max-age=0")],
        _ => vec![("vary", "accept-encoding"), ("cache-control", "max-age=60")],
    });
    let proxy = before(&own, &other, "");
    get(&proxy, "/", &[]).await;
    until("it is kept", || proxy.cache.usage().2 > 0).await;
    for codings in ["gzip", "br", "zstd", "identity"] {
        let response = get(&proxy, "/", &[("accept-encoding", codings)]).await;
        assert_eq!(response.status, StatusCode::OK);
    }
    assert_eq!(own.times("/"), 2);
}

/// Regression: an answer that its origin does not compress, so that its length reveals nothing, was compressed here.
#[tokio::test]
async fn private_response_is_compressed_only_if_origin_did() {
    let other = other();
    let text = html(&other).repeat(20);
    let coded = spdy_proxy::body::encoder::encode(&[text.clone().into()], Coding::Gzip);
    let own = Origin::start(move |request: Request<bytes::Bytes>| {
        let (text, coded) = (text.clone(), coded.clone());
        let private = ("cache-control", "private");
        let public = ("cache-control", "public, max-age=60");
        std::future::ready(match request.uri().path() {
            "/private" => respond(&[HTML, private], text),
            "/no-store" => respond(&[HTML, ("cache-control", "no-store")], text),
            "/login" => respond(&[HTML, ("set-cookie", "id=1")], text),
            "/json" => respond(&[("content-type", "application/json"), private], text),
            "/coded" => respond(&[HTML, private, ("content-encoding", "gzip")], coded),
            "/public" => respond(&[HTML, public], text),
            "/too-long" => respond(&[HTML, public], text.repeat(1000)),
            _ => respond(&[HTML], text),
        })
    });
    let careful = before(&own, &other, "[cache]\nobject_mib = 1\n");
    let (origin, port) = (own.address, other.address.port());
    let knowing = accelerator_of(&format!(
        "[[site]]\nnames = ['www.site.test']\norigin = 'http://{origin}'\ncompress_private = true\n\
         [[site.rewrite.hosts]]\nhost = 'cdn.test:{port}'\nscheme = 'http'\nkinds = ['image', 'style']\n"
    ));
    let (anonymous, with_cookie) = (("x", "y"), ("cookie", "id=1"));
    let basic = ("authorization", "Basic eDp5");
    for (target, client, is_coded) in [
        ("/private", anonymous, false),
        ("/no-store", anonymous, false),
        ("/login", anonymous, false),
        ("/json", anonymous, false),
        ("/plain", with_cookie, false),
        ("/plain", basic, false),
        ("/plain", anonymous, true),
        ("/coded", with_cookie, true),
        ("/public", with_cookie, true),
        ("/too-long", with_cookie, true),
    ] {
        let fields = [("accept-encoding", "gzip"), client];
        let response = get(&careful, target, &fields).await;
        let expected = ["", "gzip"][usize::from(is_coded)];
        assert_eq!(
            response.field("content-encoding"),
            expected,
            "{target} {client:?}"
        );
        let vary = ["", "accept-encoding"][usize::from(is_coded)];
        assert_eq!(response.field("vary"), vary, "{target} {client:?}");
        let response = get(&knowing, target, &fields).await;
        assert_eq!(
            response.field("content-encoding"),
            "gzip",
            "{target} {client:?}"
        );
    }
}

/// Regression: it was compressed like a public response, since it is stored.
#[tokio::test]
async fn cookie_variant_is_not_compressed() {
    let other = other();
    let text = html(&other).repeat(20);
    let own = Origin::start(move |_| {
        let (shared, vary) = (("cache-control", "s-maxage=60"), ("vary", "cookie"));
        std::future::ready(respond(&[HTML, shared, vary], text.clone()))
    });
    let proxy = before(&own, &other, "");
    for status in ["fwd=", "hit"] {
        for (client, expected) in [(("cookie", "id=1"), ""), (("x", "y"), "gzip")] {
            let response = get(&proxy, "/search", &[("accept-encoding", "gzip"), client]).await;
            assert!(
                response.field("cache-status").contains(status),
                "{response:?}"
            );
            assert_eq!(
                response.field("content-encoding"),
                expected,
                "{status} {client:?}"
            );
        }
    }
}
