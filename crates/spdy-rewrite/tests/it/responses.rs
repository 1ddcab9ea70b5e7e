//! Answers for moved resources as they come back: what passes, what does not.

use http::StatusCode;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::request::anonymize::{FetchMode, Load};
use spdy_rewrite::response::sanitize_response::{self, SanitizedResponse};

use crate::support::discovering;
use crate::support::fields::{PAGE_LOADS_IMAGE, fields, sorted_lines};

fn sanitize_response_for(
    target: &str,
    load: Load,
    status: u16,
    lines: &[&str],
) -> SanitizedResponse {
    let rules = discovering();
    let proxied = rules.open(target).unwrap();
    sanitize_response::sanitize(
        &rules,
        &proxied,
        load,
        StatusCode::from_u16(status).unwrap(),
        &fields(lines),
    )
}

/// In one word, for tables.
fn outcome(sanitized: SanitizedResponse) -> String {
    match sanitized {
        SanitizedResponse::Serve(_) => "serve".to_owned(),
        SanitizedResponse::StatusOnly(status) => status.as_u16().to_string(),
        SanitizedResponse::Redirect(url) => format!("direct {url}"),
        SanitizedResponse::Refuse(refusal) => refusal.name().to_owned(),
    }
}

#[test]
fn third_party_cannot_set_site_headers() {
    let SanitizedResponse::Serve(head) = sanitize_response_for(
        "/.spdy/1/-/s/cdn.test/a.png",
        PAGE_LOADS_IMAGE,
        200,
        &[
            "content-type: image/png",
            "content-length: 3",
            "etag: \"x\"",
            "cache-control: max-age=60",
            "vary: accept",
            "sourcemap: a.png.map",
            "content-disposition: attachment; filename=setup.exe",
            "set-cookie: a=1",
            "clear-site-data: \"*\"",
            "strict-transport-security: max-age=1",
            "alt-svc: h3=\":443\"",
            "nel: {}",
            "report-to: {}",
            "reporting-endpoints: a=\"https://x\"",
            "service-worker-allowed: /",
            "refresh: 0; url=https://evil.test/",
            "www-authenticate: Basic",
            "link: <https://evil.test/>; rel=preload",
            "public-key-pins: x",
            "origin-trial: x",
            "accept-ch: dpr",
            "critical-ch: dpr",
            "permissions-policy: x=*",
            "content-security-policy: default-src *",
            "access-control-allow-origin: *",
            "timing-allow-origin: *",
            "cross-origin-resource-policy: cross-origin",
            "x-content-type-options: sniff",
            "server-timing: x",
            "no-vary-search: params",
            "speculation-rules: \"/x.json\"",
            "something-of-tomorrow: x",
        ],
    ) else {
        panic!("an image is served");
    };
    let expected = [
        "cache-control: max-age=60",
        "content-length: 3",
        "content-security-policy: sandbox; default-src 'none'; style-src 'unsafe-inline'",
        "content-type: image/png",
        "cross-origin-resource-policy: same-origin",
        "etag: \"x\"",
        "sourcemap: a.png.map",
        "vary: accept",
        "x-content-type-options: nosniff",
    ];
    assert_eq!(sorted_lines(&head), expected);
}

#[test]
fn external_source_map_is_removed() {
    for map in [
        "https://evil.test/a.map",
        "//evil.test/a.map",
        "/a.map",
        "../../../x",
        "data:,x",
        "a/../../x",
        "\\x",
    ] {
        let map = format!("sourcemap: {map}");
        let SanitizedResponse::Serve(head) = sanitize_response_for(
            "/.spdy/1/-/s/cdn.test/a.png",
            PAGE_LOADS_IMAGE,
            200,
            &["content-type: image/png", &map],
        ) else {
            panic!("an image is served");
        };
        assert!(!head.contains_key("sourcemap"), "{map}");
    }
}

#[test]
fn response_type_must_match_requested_kind() {
    let any = Load {
        expected: None,
        mode: FetchMode::Unknown,
        is_subresource: false,
        is_safe_method: true,
        is_same_origin: true,
    };
    let of = |kind| Load {
        expected: Some(kind),
        mode: FetchMode::NoCors,
        is_subresource: true,
        is_safe_method: true,
        is_same_origin: true,
    };
    let fetched = Load {
        is_subresource: true,
        ..any
    };
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let folder = "/.spdy/1/-/s/folder.test/lib/a";
    let rows: [(&str, Load, &str, &str); 22] = [
        (cdn, any, "image/png", "serve"),
        (cdn, any, "IMAGE/SVG+XML; charset=utf-8", "serve"),
        (cdn, any, "text/javascript", "serve"),
        (cdn, any, "text/html", "type"),
        (cdn, any, "text/html; charset=utf-8", "type"),
        (cdn, any, "application/xhtml+xml", "type"),
        (cdn, any, "text/xml", "type"),
        (cdn, any, "application/pdf", "type"),
        (cdn, any, "text/plain", "type"),
        (cdn, any, "image/png, text/html", "field"),
        (cdn, any, "", "type"),
        (cdn, of(Kind::Image), "text/html", "type"),
        (
            cdn,
            of(Kind::Image),
            "text/javascript",
            "direct https://cdn.test/a",
        ),
        (
            cdn,
            of(Kind::Script),
            "text/plain",
            "direct https://cdn.test/a",
        ),
        (cdn, of(Kind::Style), "text/css", "serve"),
        (cdn, of(Kind::Media), "application/ogg", "serve"),
        (
            cdn,
            of(Kind::Media),
            "application/vnd.apple.mpegurl",
            "direct https://cdn.test/a",
        ),
        (
            cdn,
            fetched,
            "audio/x-mpegurl; charset=utf-8",
            "direct https://cdn.test/a",
        ),
        (cdn, any, "application/x-mpegurl", "type"),
        (folder, any, "image/gif", "serve"),
        (folder, any, "text/javascript", "type"),
        (
            folder,
            of(Kind::Image),
            "text/css",
            "direct https://folder.test/lib/a",
        ),
    ];
    for (target, load, content_type, expected) in rows {
        let line = format!("content-type: {content_type}");
        assert_eq!(
            outcome(sanitize_response_for(target, load, 200, &[&line])),
            expected,
            "{content_type} as {load:?}"
        );
    }
    let twice = ["content-type: image/png", "content-type: text/html"];
    assert_eq!(
        outcome(sanitize_response_for(cdn, any, 200, &twice)),
        "field"
    );
    assert_eq!(outcome(sanitize_response_for(cdn, any, 200, &[])), "type");
}

#[test]
fn cross_origin_resource_policy_redirects_to_host() {
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let stranger = Load {
        is_subresource: false,
        is_safe_method: true,
        is_same_origin: true,
        ..PAGE_LOADS_IMAGE
    };
    for policy in ["same-origin", "same-site"] {
        let lines = [
            "content-type: image/png".to_owned(),
            format!("cross-origin-resource-policy: {policy}"),
        ];
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        assert_eq!(
            outcome(sanitize_response_for(cdn, PAGE_LOADS_IMAGE, 200, &lines)),
            "direct https://cdn.test/a"
        );
        // A request without fetch metadata may open it as a page, and the host's answer to it could differ
        // from that to us.
        assert_eq!(
            outcome(sanitize_response_for(cdn, stranger, 200, &lines)),
            "resource-policy"
        );
        let mut page = lines;
        page[0] = "content-type: text/html";
        assert_eq!(
            outcome(sanitize_response_for(cdn, stranger, 200, &page)),
            "type"
        );
    }
}

#[test]
fn cors_read_requires_permission() {
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let cors = Load {
        expected: Some(Kind::Font),
        mode: FetchMode::Cors,
        is_subresource: true,
        is_safe_method: true,
        is_same_origin: true,
    };
    let old = Load {
        expected: None,
        mode: FetchMode::Unknown,
        is_subresource: false,
        is_safe_method: true,
        is_same_origin: true,
    };
    let font = "content-type: font/woff2";
    let allowed = "access-control-allow-origin: *";
    let named = "access-control-allow-origin: https://www.site.test";
    let other = "access-control-allow-origin: https://other.test";
    assert_eq!(
        outcome(sanitize_response_for(cdn, cors, 200, &[font, allowed])),
        "serve"
    );
    assert_eq!(
        outcome(sanitize_response_for(cdn, cors, 200, &[font, named])),
        "serve"
    );
    assert_eq!(
        outcome(sanitize_response_for(cdn, cors, 200, &[font, other])),
        "direct https://cdn.test/a"
    );
    assert_eq!(
        outcome(sanitize_response_for(cdn, cors, 200, &[font])),
        "direct https://cdn.test/a"
    );
    assert_eq!(
        outcome(sanitize_response_for(
            cdn,
            cors,
            200,
            &[font, allowed, named]
        )),
        "direct https://cdn.test/a"
    );
    for content_type in [font, "content-type: application/json"] {
        let sanitized = sanitize_response_for(cdn, old, 200, &[content_type]);
        assert_eq!(outcome(sanitized), "cors", "{content_type}");
    }
    assert_eq!(
        outcome(sanitize_response_for(
            cdn,
            old,
            200,
            &["content-type: image/png"]
        )),
        "serve"
    );
}

#[test]
fn no_cors_script_cannot_read_data() {
    let fetched = Load {
        expected: None,
        mode: FetchMode::NoCors,
        is_subresource: true,
        is_safe_method: true,
        is_same_origin: true,
    };
    for content_type in [
        "application/json",
        "font/woff2",
        "text/vtt",
        "application/wasm",
    ] {
        let line = format!("content-type: {content_type}");
        let sanitized = sanitize_response_for("/.spdy/1/-/s/cdn.test/a", fetched, 200, &[&line]);
        assert_eq!(
            outcome(sanitized),
            "direct https://cdn.test/a",
            "{content_type}"
        );
    }
}

#[test]
fn errors_have_no_body_and_no_auth_challenge() {
    let cdn = "/.spdy/1/-/s/cdn.test/a";
    let html = "content-type: text/html";
    for (status, expected) in [
        (404, "404"),
        (410, "410"),
        (500, "500"),
        (503, "503"),
        (429, "429"),
        (204, "204"),
        (401, "credentials"),
        (407, "credentials"),
        (302, "location"),
        (304, "serve"),
    ] {
        assert_eq!(
            outcome(sanitize_response_for(
                cdn,
                PAGE_LOADS_IMAGE,
                status,
                &[html]
            )),
            expected,
            "{status}"
        );
    }
}
