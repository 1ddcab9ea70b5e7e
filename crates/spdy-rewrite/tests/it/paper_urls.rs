//! The form of the paper that this follows: `/HOST/PATH` of the site for what is at `HOST/PATH`.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use spdy_rewrite::csp;
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::config::{Config, HostConfig, Scheme};
use spdy_rewrite::rules::error::RulesError;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::verdict::{ReferenceSource, Verdict};

use crate::support::{config, discovering, keys, rules, url};

const SITE: &str = "https://www.site.test";

fn compiled(config: &Config) -> Rules {
    let rules = Rules::compile(&url(SITE), config, Some(keys())).expect("the rules are valid");
    rules.with_literal_urls().expect("nothing is discovered")
}

fn literal() -> Rules {
    compiled(&config())
}

fn proxied_path(rules: &Rules, at: &str, kind: Kind) -> Option<String> {
    match rules.verdict(&url(at), kind, ReferenceSource::Site) {
        Verdict::Rewrite(path) => Some(path),
        Verdict::Skip(_) => None,
    }
}

#[test]
fn literal_url_round_trips_with_defaults() {
    let rules = literal();
    for (at, expected) in [
        ("https://cdn.test/a/b.png?c=/d", "/cdn.test/a/b.png?c=/d"),
        ("https://cdn.test/", "/cdn.test/"),
        ("https://folder.test/lib/a.png", "/folder.test/lib/a.png"),
        ("https://a.wild.test/a.png", "/a.wild.test/a.png"),
        ("https://port.test:8443/a.png", "/port.test/a.png"),
        ("http://plain.test/a.png", "/plain.test/a.png"),
        ("https://cdn.test/a.png#b", "/cdn.test/a.png#b"),
    ] {
        let path = proxied_path(&rules, at, Kind::Image);
        assert_eq!(path.as_deref(), Some(expected), "{at}");
        let target = expected
            .split('#')
            .next()
            .expect("split yields at least one part");
        assert!(rules.is_proxied_target(target), "{target}");
        let opened = rules
            .open(target)
            .unwrap_or_else(|reason| panic!("{target}: {reason}"));
        let without_fragment = at
            .split('#')
            .next()
            .expect("split yields at least one part");
        assert_eq!(opened.url().as_str(), without_fragment);
        assert_eq!(opened.path(), target);
    }
}

#[test]
fn literal_url_follows_the_same_rules() {
    let rules = literal();
    for (target, name) in [
        ("/folder.test/other/a.png", "path-not-listed"),
        ("/cdn.test/../secret", "dot-segment"),
        ("/cdn.test/%2e%2e/secret", "dot-segment"),
        ("/cdn.test/a\\b", "backslash"),
        ("/cdn.test/a%00b", "nul"),
        ("/cdn.test/.spdy/1/-/s/cdn.test/a.png", "nested"),
        ("/cdn.test/a b", "control-byte"),
    ] {
        assert!(
            rules.is_proxied_target(target),
            "{target}: it is no path of the site's"
        );
        let refusal = rules.open(target).expect_err(target);
        assert_eq!(refusal.name(), name, "{target}");
    }
    let long = format!("/cdn.test/{}", "a".repeat(8192));
    assert_eq!(rules.open(&long).unwrap_err().name(), "too-long");
    let shared = rules
        .open("/shared.test/a.js")
        .expect("images of the host are listed");
    assert!(
        !shared.kinds().has(Kind::Script),
        "no capability, no script"
    );
}

#[test]
fn only_listed_hosts_take_a_site_path() {
    let rules = literal();
    for target in [
        "/stranger.test/a.png",
        "/evil.test/a.png",
        "/cdn.test",
        "/cdn.test?a",
        "/cdn.test:443/a.png",
        "/CDN.test/a.png",
        "/cdn%2etest/a.png",
        "//cdn.test/a.png",
        "/a/cdn.test/a.png",
        "/10.0.0.1/a.png",
        "/localhost/a.png",
        "/user@cdn.test/a.png",
        "/b.a.wild.test/a.png",
        "/",
        "",
    ] {
        assert!(!rules.is_proxied_target(target), "{target}");
        assert_eq!(rules.open(target), Err(Refusal::NotProxied), "{target}");
    }
}

#[test]
fn without_the_switch_literal_url_is_refused() {
    let rules = rules();
    assert!(!rules.is_proxied_target("/cdn.test/a.png"));
    assert_eq!(rules.open("/cdn.test/a.png"), Err(Refusal::NotProxied));
    assert_ne!(
        rules.tag(),
        literal().tag(),
        "stored responses are distinct"
    );
}

#[test]
fn full_urls_still_open_in_literal_mode() {
    let rules = literal();
    let path = "/.spdy/1/-/s/cdn.test/a.png";
    assert!(rules.is_proxied_target(path));
    let opened = rules.open(path).expect("its host is listed");
    assert_eq!(opened.url().as_str(), "https://cdn.test/a.png");
}

#[test]
fn urls_needing_capabilities_are_unchanged() {
    let both = Config {
        hosts: vec![
            HostConfig::passive("cdn.test"),
            HostConfig {
                scheme: Scheme::Http,
                ..HostConfig::passive("cdn.test")
            },
            HostConfig::passive("cdn.test:8443"),
        ],
        ..Config::default()
    };
    let rules = compiled(&both);
    let image = |at| proxied_path(&rules, at, Kind::Image);
    assert_eq!(
        image("https://cdn.test/a.png").as_deref(),
        Some("/cdn.test/a.png")
    );
    assert_eq!(image("http://cdn.test/a.png"), None, "another scheme");
    assert_eq!(image("https://cdn.test:8443/a.png"), None, "another port");
    assert_eq!(
        proxied_path(&literal(), "https://shared.test/a.js", Kind::Script),
        None
    );
    let discovered = Rules::compile(
        &url(SITE),
        &Config {
            discover: true,
            ..config()
        },
        Some(keys()),
    );
    let refused = discovered.expect("the rules are valid").with_literal_urls();
    assert_eq!(refused.err(), Some(RulesError::Literal));
    assert!(
        discovering().is_proxied_target("/.spdy/"),
        "the other form is for that"
    );
}

#[test]
fn literal_page_policy_and_import_map_are_consistent() {
    let rules = Arc::new(literal());
    let page = url("https://www.site.test/dir/page.html");
    let policy = csp::rewrite(
        &rules,
        &page,
        "img-src https://cdn.test https://folder.test/lib/a/",
    );
    assert_eq!(
        policy.as_deref(),
        Some(
            "img-src https://cdn.test https://folder.test/lib/a/ https://www.site.test/cdn.test/ \
             https://www.site.test/folder.test/lib/a/"
        )
    );
    let mut headers = HeaderMap::new();
    headers.insert(
        CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    let head = PageHead::rewrite(&rules, &page, StatusCode::OK, &mut headers, true);
    let mut rewriter = HtmlRewriter::new(&rules, &page, head, None);
    let mut out = Vec::new();
    let text = "<script type=\"importmap\">{\"imports\":{\"a\":\"https://cdn.test/a.js\"}}</script>\
                <img src=https://cdn.test/a.png><img src=https://stranger.test/b.png>";
    rewriter.write(text.as_bytes(), &mut out);
    let report = rewriter.end(&mut out);
    let out = String::from_utf8(out).expect("text");
    assert_eq!(
        out,
        "<script type=\"importmap\">{\"imports\":{\"a\":\"/cdn.test/a.js\",\"https://cdn.test/\":\"/cdn.test/\"},\
         \"scopes\":{\"/cdn.test/\":{\"/\":\"/cdn.test/\",\"/cdn.test/\":\"/cdn.test/\"}}}</script>\
         <img src=\"/cdn.test/a.png\"><img src=https://stranger.test/b.png>"
    );
    assert_eq!(report.proxied, 2);
}
