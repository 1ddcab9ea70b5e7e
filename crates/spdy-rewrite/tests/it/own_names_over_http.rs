//! References to the site's own names over `http`, on pages that came over `https`.

use std::sync::Arc;

use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::reference::page_report::PageReport;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::config::Config;

use crate::support::page::html;
use crate::support::{compile, config, keys, url};

/// The site, with another name.
fn rules(config: Config) -> Arc<Rules> {
    let names = ["www.site.test", "site.test"].map(str::to_owned);
    let config = Config {
        site_names: names.to_vec(),
        own_hosts: ["site.test", "img.site.test"].map(str::to_owned).to_vec(),
        ..config
    };
    compile(&config, keys())
}

fn rewritten(page: &str, policy: Option<&str>, text: &str) -> (String, PageReport) {
    let (rules, page) = (rules(config()), url(page));
    let mut headers = html("text/html; charset=utf-8");
    if let Some(policy) = policy {
        let policy = policy.parse().expect("a value");
        headers.insert("content-security-policy", policy);
    }
    let head = PageHead::rewrite(&rules, &page, http::StatusCode::OK, &mut headers, true);
    let mut rewriter = HtmlRewriter::new(&rules, &page, head, None);
    let mut out = Vec::new();
    rewriter.write(text.as_bytes(), &mut out);
    let report = rewriter.end(&mut out);
    (String::from_utf8(out).expect("the value is text"), report)
}

const PAGE: &str = "https://www.site.test/dir/page.html";

#[test]
fn https_page_references_site_by_https() {
    for (text, expected) in [
        (
            "<img src=http://www.site.test/a.png>",
            "<img src=\"/a.png\">",
        ),
        (
            "<img src='HTTP://WWW.site.test:80/a.png?b#c'>",
            "<img src=\"/a.png?b#c\">",
        ),
        ("<img src=http://www.site.test>", "<img src=\"/\">"),
        (
            "<img src=http://site.test/a.png>",
            "<img src=\"https://site.test/a.png\">",
        ),
        (
            "<img srcset='http://www.site.test/a.png 1x, http://www.site.test/b.png 2x'>",
            "<img srcset=\"/a.png 1x, /b.png 2x\">",
        ),
        (
            "<p style='background: url(http://www.site.test/a.png)'>",
            "<p style=\"background: url(/a.png)\">",
        ),
        (
            "<style>@import 'http://www.site.test/a.css'; p { background: url(http://site.test/b.png) }</style>",
            "<style>@import '/a.css'; p { background: url(https://site.test/b.png) }</style>",
        ),
        (
            "<script src=http://www.site.test/a.js></script>",
            "<script src=\"/a.js\"></script>",
        ),
        (
            "<script src=http://www.site.test/a.js integrity=sha256-AA></script>",
            "<script src=\"/a.js\" integrity=sha256-AA></script>",
        ),
        (
            "<link rel=stylesheet href=http://www.site.test/a.css>",
            "<link rel=stylesheet href=\"/a.css\">",
        ),
        (
            "<video poster=http://www.site.test/a.png></video>",
            "<video poster=\"/a.png\"></video>",
        ),
        (
            "<img data-src=http://www.site.test/a.png>",
            "<img data-src=\"/a.png\">",
        ),
        // A page may name its base elsewhere.
        (
            "<base href=http://cdn.test/><img src=http://www.site.test/a.png>",
            "<base href=http://cdn.test/><img src=\"https://www.site.test/a.png\">",
        ),
        // Two slashes would begin another host's name.
        (
            "<img src=http://www.site.test//evil.test/a.png>",
            "<img src=\"https://www.site.test//evil.test/a.png\">",
        ),
    ] {
        assert_eq!(rewritten(PAGE, None, text).0, expected, "{text}");
    }
}

#[test]
fn navigation_frames_and_other_ports_stay_http() {
    for text in [
        "<a href=http://www.site.test/>",
        "<form action=http://www.site.test/>",
        "<meta http-equiv=refresh content='0; url=http://www.site.test/'>",
        "<link rel=canonical href=http://www.site.test/>",
        "<iframe src=http://www.site.test/></iframe>",
        "<img src=http://www.site.test:81/a.png>",
        "<img src=http://img.site.test/a.png>",
        "<img src=http://u:p@www.site.test/a.png>",
        "<img src=http://else.test/a.png>",
        "<img data-no-spdy src=http://www.site.test/a.png>",
    ] {
        assert_eq!(rewritten(PAGE, None, text).0, text);
    }
}

#[test]
fn http_page_references_site_by_http() {
    let text = "<img src=http://www.site.test/a.png>";
    let (out, report) = rewritten("http://www.site.test/", None, text);
    assert_eq!((out.as_str(), report.proxied), (text, 0));
}

#[test]
fn other_site_name_gets_the_page_port() {
    let page = "https://www.site.test:8443/";
    let text = "<img src=http://www.site.test/a.png><img src=http://site.test/b.png>";
    let expected = "<img src=\"/a.png\"><img src=\"https://site.test:8443/b.png\">";
    assert_eq!(rewritten(page, None, text).0, expected);
}

#[test]
fn csp_block_and_upgrade_are_preserved() {
    let text = "<img src=http://www.site.test/a.png>";
    let rewritten_image = "<img src=\"/a.png\">";
    for (policy, expected) in [
        ("upgrade-insecure-requests", rewritten_image),
        ("img-src http://www.site.test", rewritten_image),
        ("img-src http:", rewritten_image),
        ("img-src 'none'", text),
        ("img-src https://www.site.test", text),
    ] {
        assert_eq!(rewritten(PAGE, Some(policy), text).0, expected, "{policy}");
    }
}

#[test]
fn https_upgrade_counts_as_rewritten_not_aliased() {
    let text =
        "<img src=http://www.site.test/a.png><img src=http://site.test/b.png><img src=/c.png>";
    let (_, report) = rewritten(PAGE, None, text);
    assert_eq!((report.proxied, report.aliased), (2, 0));
    let rewritten_urls: Vec<_> = report
        .hosts
        .iter()
        .map(|(host, count)| (host.as_str(), count.proxied))
        .collect();
    assert_eq!(
        rewritten_urls,
        [("http://site.test", 1), ("http://www.site.test", 1)]
    );
}
