//! Upstream requests for proxied resources: which headers of the client are passed on, and which are not.

use http::Request;
use spdy_rewrite::request::anonymize::{self, UpstreamRequest};
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::config::{Config, HostConfig, Referrer};

use crate::support::fields::{fields, sorted_lines};
use crate::support::{self, rules};

fn upstream(rules: &Rules, target: &str, lines: &[&str]) -> UpstreamRequest {
    let mut request = Request::new(());
    *request.headers_mut() = fields(lines);
    anonymize::request(rules, &rules.open(target).unwrap(), &request).unwrap()
}

#[test]
fn no_client_data_is_sent_upstream() {
    let upstream = upstream(
        &rules(),
        "/.spdy/1/-/s/cdn.test/a.png",
        &[
            "cookie: session=1",
            "authorization: Basic eA==",
            "origin: https://www.site.test",
            "referer: https://www.site.test/secret?token=1",
            "x-forwarded-for: 192.0.2.1",
            "forwarded: for=192.0.2.1",
            "x-original-url: /admin",
            "x-http-method-override: DELETE",
            "sec-ch-ua: x",
            "user-agent: Mozilla/5.0 Chrome/140.0.0.0",
            "accept: image/avif,image/webp,*/*",
            "accept-language: de",
            "accept-encoding: gzip, deflate, br, zstd",
            "if-none-match: \"x\"",
            "range: bytes=0-1",
            "sec-fetch-dest: image",
            "sec-fetch-mode: no-cors",
            "sec-fetch-site: same-origin",
            "cdn-loop: other",
            "te: trailers",
            "priority: u=1",
        ],
    );
    let expected = [
        "accept-encoding: br, gzip",
        "accept: image/avif,image/webp,image/*,*/*;q=0.8",
        "cdn-loop: other, www.site.test",
        "referer: https://www.site.test/",
        "user-agent: Mozilla/5.0 (compatible; spdy-accelerate)",
        "via: 1.1 www.site.test",
    ];
    assert_eq!(sorted_lines(&upstream.headers), expected);
}

/// One that took Brotli alone was given gzip as well.
#[test]
fn only_client_codings_are_requested_except_stylesheets() {
    for (accepted, dest, expected) in [
        ("gzip, br", "script", "br, gzip"),
        ("gzip, br;q=0", "script", "gzip"),
        ("br", "script", "identity"),
        ("br", "style", "br, gzip"),
    ] {
        let lines = [
            &format!("accept-encoding: {accepted}"),
            &format!("sec-fetch-dest: {dest}"),
        ];
        let lines = lines.map(String::as_str);
        let upstream = upstream(&rules(), "/.spdy/1/-/s/cdn.test/a", &lines);
        assert_eq!(
            upstream.headers["accept-encoding"], expected,
            "{accepted}, {dest}"
        );
    }
}

#[test]
fn cors_load_sends_site_origin() {
    let rules = rules();
    let names_site = |lines: &[&str]| {
        let upstream = upstream(&rules, "/.spdy/1/-/s/cdn.test/a", lines);
        assert_eq!(
            upstream.load.sends_origin(),
            upstream.headers.contains_key("origin")
        );
        upstream
            .headers
            .get("origin")
            .map(|origin| origin.to_str().unwrap().to_owned())
    };
    let site = Some("https://www.site.test".to_owned());
    assert_eq!(
        names_site(&["sec-fetch-dest: font", "sec-fetch-mode: cors"]),
        site
    );
    assert_eq!(
        names_site(&["sec-fetch-dest: track", "sec-fetch-mode: same-origin"]),
        site
    );
    assert_eq!(
        names_site(&[]),
        site,
        "a client of before 2019 may be loading a font"
    );
    assert_eq!(
        names_site(&["sec-fetch-dest: image", "sec-fetch-mode: no-cors"]),
        None
    );
}

#[test]
fn referrer_follows_cross_origin_default() {
    let referer = |rules: &Rules, target: &str, lines: &[&str]| {
        upstream(rules, target, lines)
            .headers
            .contains_key("referer")
    };
    let referer_line = ["referer: https://www.site.test/a"];
    assert!(referer(
        &rules(),
        "/.spdy/1/-/s/cdn.test/a.png",
        &referer_line
    ));
    assert!(
        !referer(&rules(), "/.spdy/1/-/s/cdn.test/a.png", &[]),
        "the browser sent no Referer"
    );
    assert!(
        !referer(&rules(), "/.spdy/1/-/p/plain.test/a.png", &referer_line),
        "no Referer from TLS to plain HTTP"
    );
    let silent = support::compile(
        &Config {
            referrer: Referrer::None,
            ..support::config()
        },
        support::keys(),
    );
    assert!(!referer(
        &silent,
        "/.spdy/1/-/s/cdn.test/a.png",
        &referer_line
    ));
}

#[test]
fn language_and_device_class_go_only_to_configured_hosts() {
    let config = Config {
        hosts: vec![HostConfig {
            accept_language: true,
            user_agent: true,
            ..HostConfig::passive("fonts.test")
        }],
        ..Config::default()
    };
    let rules = support::compile(&config, support::keys());
    let device_headers = |agent: &str| {
        let agent = format!("user-agent: {agent}");
        let upstream = upstream(
            &rules,
            "/.spdy/1/-/s/fonts.test/css",
            &["accept-language: de", &agent],
        );
        assert_eq!(upstream.headers["accept-language"], "de");
        upstream.headers["user-agent"].to_str().unwrap().to_owned()
    };
    let desktop =
        device_headers("Mozilla/5.0 (Windows NT 10.0) Chrome/141.0.7390.54 Safari/537.36");
    assert_eq!(
        desktop,
        device_headers("Mozilla/5.0 (X11) Gecko/20100101 Firefox/143.0"),
        "one class, one variant"
    );
    let mobile = device_headers(
        "Mozilla/5.0 (Linux; Android 15; Pixel 9) Chrome/141.0 Mobile Safari/537.36",
    );
    assert!(mobile.contains("Mobile") && mobile != desktop);
    assert!(device_headers("curl/8").contains("compatible"));
}
