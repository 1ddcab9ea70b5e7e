//! The fields of a page's head about other hosts: policies, links, and those about its own bytes.

use http::StatusCode;
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY_REPORT_ONLY, CONTENT_TYPE, HeaderMap,
    HeaderName, HeaderValue, LINK,
};
use spdy_rewrite::csp;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::integrity::IntegrityState;
use spdy_rewrite::reference::site_facts::SiteFacts;
use spdy_rewrite::rules::verdict::SkipReason;
use spdy_rewrite::{html, response::rewritten_head};
use std::sync::Arc;
use url::Url;

use crate::support::{discovering, rules, url};

const SITE: &str = "https://www.site.test/.spdy/1/-";

/// The page that they are of.
fn page() -> Url {
    url("https://www.site.test/dir/")
}

#[track_caller]
fn becomes(policy: &str, expected: &str) {
    let rewritten = csp::rewrite(&rules(), &page(), policy);
    assert_eq!(
        rewritten.as_deref(),
        Some(expected.replace("{site}", SITE).as_str()),
        "{policy}"
    );
}

#[track_caller]
fn stays(policy: &str) {
    assert_eq!(csp::rewrite(&rules(), &page(), policy), None);
}

#[test]
fn policy_source_of_proxied_host_gets_proxied_path() {
    becomes(
        "img-src https://cdn.test",
        "img-src https://cdn.test {site}/s/cdn.test/",
    );
    becomes(
        "default-src 'none'; img-src cdn.test;font-src x.test",
        "default-src 'none'; img-src cdn.test {site}/s/cdn.test/;font-src x.test",
    );
    becomes(
        "script-src 'nonce-a' https://cdn.test/js/",
        "script-src 'nonce-a' https://cdn.test/js/ {site}/s/cdn.test/js/",
    );
    becomes(
        "script-src https://cdn.test/js/a.js",
        "script-src https://cdn.test/js/a.js {site}/s/cdn.test/js/a.js",
    );
    becomes(
        "img-src https://port.test:8443",
        "img-src https://port.test:8443 {site}/s/port.test~8443/",
    );
    becomes(
        "img-src https://port.test:*",
        "img-src https://port.test:* {site}/s/port.test~8443/",
    );
    becomes(
        "img-src http://plain.test",
        "img-src http://plain.test {site}/p/plain.test/",
    );
    becomes(
        "img-src https://*.wild.test https://a.wild.test",
        "img-src https://*.wild.test https://a.wild.test {site}/s/a.wild.test/",
    );
    becomes(
        "img-src a.wild.test b.wild.test , img-src cdn.test",
        "img-src a.wild.test b.wild.test {site}/s/a.wild.test/ {site}/s/b.wild.test/, img-src cdn.test {site}/s/cdn.test/",
    );
}

#[test]
fn policy_is_never_widened() {
    becomes(
        "img-src https://folder.test",
        "img-src https://folder.test {site}/s/folder.test/lib/",
    );
    becomes(
        "img-src https://folder.test/lib/a/",
        "img-src https://folder.test/lib/a/ {site}/s/folder.test/lib/a/",
    );
    for policy in [
        "img-src https://folder.test/other/",
        "script-src https://folder.test",
        "img-src 'self' https://cdn.test",
        "img-src https: https://cdn.test",
        "img-src * https://cdn.test",
        "img-src https://* https://cdn.test",
        "img-src *:443 https://cdn.test",
        "img-src https://*",
        "img-src *:*",
        "img-src 'none'",
        "img-src https://stranger.test https://evil.test https://www.site.test",
        "img-src https://*.wild.test",
        "img-src https://port.test",
        "img-src https://plain.test",
        "connect-src https://cdn.test; frame-src https://cdn.test; object-src https://cdn.test; worker-src https://cdn.test",
        "sandbox; frame-ancestors https://cdn.test; report-uri https://cdn.test; base-uri https://cdn.test; form-action https://cdn.test",
        "script-src 'strict-dynamic' 'nonce-a'",
        "script-src https://shared.test",
        "img-src data: blob:",
        "",
    ] {
        stays(policy);
    }
}

/// It was read as a host of that name, so nothing was moved under such a policy.
#[test]
fn star_with_scheme_or_port_matches_every_host() {
    let allow = |policy: &str, url: &Url| {
        let mut policies = csp::Policies::none(&page());
        policies.add(&rules(), policy);
        policies.allow(url, Kind::Image, csp::CspCredentials::default())
    };
    let (cdn, other) = (
        url("https://cdn.test/a.png"),
        url("https://port.test:8443/a.png"),
    );
    for (policy, of_cdn, of_other) in [
        ("img-src https://*", true, false),
        ("img-src https://*:443", true, false),
        ("img-src *:443", true, false),
        ("img-src *:*", true, true),
        ("img-src *:8443", false, true),
        ("img-src ws://*", false, false),
        ("img-src https://*/b/", false, false),
    ] {
        let actual = (allow(policy, &cdn), allow(policy, &other));
        assert_eq!(actual, (of_cdn, of_other), "{policy}");
    }
}

#[test]
fn public_cdn_script_source_gets_its_capability_path() {
    let rewritten =
        csp::rewrite(&rules(), &page(), "script-src https://shared.test/lib.js").unwrap();
    let added = rewritten.rsplit(' ').next().unwrap();
    let proxied = rules()
        .open(&url(added)[url::Position::BeforePath..])
        .unwrap();
    assert_eq!(proxied.url().as_str(), "https://shared.test/lib.js");
}

#[test]
fn discoverable_host_source_gets_capability_path() {
    let rules = discovering();
    let rewritten = csp::rewrite(&rules, &page(), "img-src https://open.test").unwrap();
    let added = url(rewritten.rsplit(' ').next().unwrap());
    assert_eq!(rules.open(added.path()).unwrap().host(), "open.test");
    assert_eq!(
        csp::rewrite(&rules, &page(), "script-src https://open.test"),
        None
    );
    assert_eq!(
        csp::rewrite(
            &rules,
            &page(),
            "img-src https://*.open.test http://open.test https://open.test:444"
        ),
        None
    );
}

/// A site may have several names, and answer over plain HTTP too; the browser requests a path from the root at the page's own origin.
#[test]
fn policy_is_rewritten_for_the_page_url() {
    let prefix = "/.spdy/1/-/s/cdn.test/";
    for home in [
        "https://site.test",
        "http://www.site.test:8080",
        "https://www.site.test",
    ] {
        let page = url(&format!("{home}/dir/"));
        let policy = "img-src 'self' https://cdn.test; script-src https://cdn.test";
        let rewritten = csp::rewrite(&rules(), &page, policy).unwrap();
        let expected =
            format!("img-src 'self' https://cdn.test; script-src https://cdn.test {home}{prefix}");
        assert_eq!(rewritten, expected, "what 'self' allows is allowed");
    }
}

#[test]
fn rewritten_policy_is_stable() {
    for policy in [
        "img-src https://cdn.test https://a.wild.test",
        "default-src cdn.test port.test:8443; script-src shared.test/a.js",
    ] {
        let once = csp::rewrite(&discovering(), &page(), policy).unwrap();
        assert_eq!(csp::rewrite(&discovering(), &page(), &once), None, "{once}");
    }
}

fn head(lines: &[(&str, &str)]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    for (name, value) in lines {
        headers.append(
            name.parse::<HeaderName>().unwrap(),
            HeaderValue::from_str(value).unwrap(),
        );
    }
    headers
}

fn rewrite(headers: &mut HeaderMap) -> PageHead {
    PageHead::rewrite(&rules(), &page(), StatusCode::OK, headers, true)
}

#[test]
fn report_only_policies_are_rewritten() {
    let mut headers = head(&[
        ("content-security-policy", "img-src cdn.test"),
        ("content-security-policy", "font-src x.test"),
        ("content-security-policy-report-only", "img-src cdn.test"),
    ]);
    rewrite(&mut headers);
    let policies: Vec<_> = headers.get_all(CONTENT_SECURITY_POLICY).iter().collect();
    assert_eq!(
        policies,
        [
            &format!("img-src cdn.test {SITE}/s/cdn.test/"),
            "font-src x.test"
        ]
    );
    assert_eq!(
        headers[CONTENT_SECURITY_POLICY_REPORT_ONLY],
        format!("img-src cdn.test {SITE}/s/cdn.test/")
    );
}

#[test]
fn unreadable_policy_disables_rewriting() {
    let mut headers = head(&[("link", "<https://cdn.test/a.css>; rel=stylesheet")]);
    let policy = HeaderValue::from_bytes(b"img-src *; \xff").unwrap();
    headers.insert(CONTENT_SECURITY_POLICY, policy.clone());
    let references = rewrite(&mut headers).references;
    assert_eq!(
        references[0].outcome.as_ref().map_err(SkipReason::name),
        Err("policy")
    );
    assert_eq!(headers[CONTENT_SECURITY_POLICY], policy);
}

#[test]
fn link_headers_are_rewritten_like_elements() {
    let links = |value: &str| {
        let mut headers = head(&[("link", value)]);
        rewrite(&mut headers);
        headers
            .get_all(LINK)
            .iter()
            .map(|value| value.to_str().unwrap().to_owned())
            .collect::<Vec<_>>()
            .join(" | ")
    };
    let cdn = "/.spdy/1/-/s/cdn.test";
    assert_eq!(
        links("<https://cdn.test/a.css>; rel=preload; as=style"),
        format!("<{cdn}/a.css>; rel=preload; as=style")
    );
    assert_eq!(
        links(
            "<https://cdn.test/a.css?x=1,2>; rel=\"stylesheet\"; title=\"a, b\", </own.css>;rel=stylesheet , <https://cdn.test>; rel=preconnect"
        ),
        format!(
            "<{cdn}/a.css?x=1,2>; rel=\"stylesheet\"; title=\"a, b\", </own.css>;rel=stylesheet"
        )
    );
    assert_eq!(links("<https://cdn.test>; rel=preconnect"), "");
    // Of these a browser loads one, and what is in its place never.
    assert_eq!(
        links(
            "<>; rel=preload; as=image; imagesizes=\"50vw\"; \
             imagesrcset=\"https://cdn.test/a.png?b=1;2 640w, /own.png 2x, https://cdn.test/c.png\""
        ),
        format!(
            "<>; rel=preload; as=image; imagesizes=\"50vw\"; \
             imagesrcset=\"{cdn}/a.png?b=1;2 640w, /own.png 2x, {cdn}/c.png\""
        )
    );
    assert_eq!(
        links(
            "<https://cdn.test/a.png>; rel=preload; imagesrcset = https://cdn.test/b.png ; as=image"
        ),
        format!("<{cdn}/a.png>; rel=preload; imagesrcset = \"{cdn}/b.png\" ; as=image")
    );
    assert_eq!(
        links("</a>; rel=preload; as=image; imagesrcset=\" https://cdn.test/a.png 2x \""),
        format!("</a>; rel=preload; as=image; imagesrcset=\" {cdn}/a.png 2x \"")
    );
    for untouched in [
        "<https://cdn.test/a.css>; title=\"; rel=preload; as=style\"; rel=next",
        "</a>; rel=preload; as=fetch; imagesrcset=\"https://cdn.test/a.png 2x\"",
        "</a>; rel=preload; as=image; imagesrcset=\"https://cdn.test/a.png 2x\"; crossorigin=use-credentials",
        "<https://cdn.test/m.json>; rel=manifest",
        "<https://cdn.test/>; rel=canonical",
        "<https://cdn.test/a.css>; rel=preload; as=style; anchor=\"/x\"",
        "<https://cdn.test/a.png>; rel=preload; as=image; crossorigin=use-credentials",
        "<https://cdn.test/a.css>; rel=preload; as=style; integrity=sha256-AA",
        "<https://stranger.test>; rel=preconnect",
        "<https://shared.test/m.js>; rel=modulepreload",
        "nonsense, <unclosed",
    ] {
        assert_eq!(links(untouched), untouched);
    }
    let value = "</a>; rel=preload; as=image; imagesrcset=\"https://cdn.test/a.png 2x\"";
    let references = rewrite(&mut head(&[("link", value)])).references;
    let names: Vec<_> = references
        .iter()
        .map(|reference| (&reference.url[..], reference.is_candidate))
        .collect();
    let page = "https://www.site.test/a";
    assert_eq!(names, [(page, false), ("https://cdn.test/a.png", true)]);
}

#[test]
fn rewritten_page_drops_headers_of_original_bytes() {
    let mut headers = head(&[
        ("content-length", "5"),
        ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("accept-ranges", "bytes"),
        ("content-md5", "x"),
        ("digest", "x"),
        ("repr-digest", "x"),
        ("content-digest", "x"),
        ("etag", "\"v1\""),
        ("vary", "cookie"),
    ]);
    rewrite(&mut headers);
    let rules = rules();
    let names: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
    assert_eq!(names, ["content-type", "vary", "etag"]);
    let etag = headers["etag"].to_str().unwrap();
    assert_eq!(etag, format!("\"v1~{}\"", rules.tag()));
    assert_eq!(
        rewritten_head::original_etag(&rules, etag).as_deref(),
        Some("\"v1\"")
    );
    assert_eq!(rewritten_head::original_etag(&rules, "\"v1\""), None);
    assert_eq!(
        rewritten_head::original_etag(&discovering(), etag),
        None,
        "other rules"
    );
    let mut weak = head(&[("etag", "W/\"v1\"")]);
    rewrite(&mut weak);
    assert!(weak["etag"].to_str().unwrap().starts_with("W/\"v1~"));
    let mut by_sheets = head(&[("etag", "\"v1\"")]);
    rewritten_head::mark_etag(&rules, &mut by_sheets, false);
    assert!(by_sheets["etag"].to_str().unwrap().starts_with("W/\"v1~"));
}

/// A cache that has two sheets.
#[derive(Debug)]
struct TwoSheets;

impl SiteFacts for TwoSheets {
    fn stylesheet_integrity(&self, url: &Url, metadata: &str) -> IntegrityState {
        assert_eq!(metadata, "sha256-AAAA");
        match url.path() {
            "/same.css" => IntegrityState::Unchanged,
            "/other.css" => IntegrityState::Rewritten("sha256-BBBB".to_owned()),
            _ => IntegrityState::Unknown,
        }
    }
}

#[test]
fn pinned_stylesheet_is_rewritten_once_verified() {
    let rewrite = |name: &str| {
        let (rules, page) = (rules(), url("https://www.site.test/"));
        let head = PageHead::rewrite(&rules, &page, StatusCode::OK, &mut head(&[]), false);
        let mut rewriter = html::HtmlRewriter::new(&rules, &page, head, Some(Arc::new(TwoSheets)));
        let mut out = Vec::new();
        let link =
            format!("<link rel=stylesheet integrity=sha256-AAAA href=https://cdn.test/{name}>");
        rewriter.write(link.as_bytes(), &mut out);
        rewriter.end(&mut out);
        String::from_utf8(out).unwrap()
    };
    assert_eq!(
        rewrite("same.css"),
        "<link rel=stylesheet integrity=sha256-AAAA href=\"/.spdy/1/-/s/cdn.test/same.css\">"
    );
    assert_eq!(
        rewrite("other.css"),
        "<link rel=stylesheet integrity=\"sha256-BBBB\" href=\"/.spdy/1/-/s/cdn.test/other.css\">"
    );
    assert_eq!(
        rewrite("new.css"),
        "<link rel=stylesheet integrity=sha256-AAAA href=https://cdn.test/new.css>"
    );
}

#[test]
fn link_header_and_element_treat_pins_alike() {
    for (sheet, is_rewritten) in [
        ("https://cdn.test/same.css", false),
        ("https://cdn.test/other.css", true),
        ("https://cdn.test/new.css", false),
        ("/same.css", false),
        ("/other.css", true),
        ("/new.css", false),
    ] {
        let (rules, page) = (rules(), url("https://www.site.test/"));
        let link = format!("<{sheet}>; rel=preload; as=style; integrity=\"sha256-AAAA\"");
        let mut headers = head(&[("link", &link)]);
        let status = StatusCode::OK;
        let head = PageHead::rewrite_with_facts(
            &rules,
            &page,
            status,
            &mut headers,
            false,
            Some(&TwoSheets),
        );
        let mut rewriter = html::HtmlRewriter::new(&rules, &page, head, Some(Arc::new(TwoSheets)));
        let mut out = Vec::new();
        let element =
            format!("<link rel=preload as=style integrity=\"sha256-AAAA\" href=\"{sheet}\">");
        rewriter.write(element.as_bytes(), &mut out);
        rewriter.end(&mut out);
        let element = String::from_utf8(out).unwrap();
        let link = headers[LINK].to_str().unwrap();
        let named = link[1..].split('>').next().unwrap();
        assert!(
            element.contains(&format!("href=\"{named}\"")),
            "{element} and {link}"
        );
        for text in [link, &element] {
            let pinned = text.contains("integrity=\"sha256-BBBB\"");
            assert_eq!(pinned, is_rewritten, "{text}");
            assert_eq!(
                text.contains("integrity=\"sha256-AAAA\""),
                !is_rewritten,
                "{text}"
            );
        }
        let is_marked = named == "/new.css?spdy=off";
        assert_eq!(is_marked, sheet == "/new.css", "{named}");
    }
}

#[test]
fn unknown_pinned_site_stylesheet_is_requested_unrewritten() {
    for (link, written) in [
        (
            "<link rel=stylesheet integrity=sha256-AAAA href=/own.css>",
            "<link rel=stylesheet integrity=sha256-AAAA href=\"/own.css?spdy=off\">",
        ),
        (
            "<link rel=stylesheet integrity=sha256-AAAA data-no-spdy href=\" https://www.site.test/a?b=1&amp;c#d \">",
            "<link rel=stylesheet integrity=sha256-AAAA data-no-spdy href=\"https://www.site.test/a?b=1&amp;c&amp;spdy=off#d\">",
        ),
        (
            "<link rel=stylesheet integrity=md5-AAAA href=/own.css>",
            "<link rel=stylesheet integrity=md5-AAAA href=/own.css>",
        ),
        (
            "<script integrity=sha256-AAAA src=/own.js></script>",
            "<script integrity=sha256-AAAA src=/own.js></script>",
        ),
        (
            "<link rel=stylesheet integrity=sha256-AAAA href=https://img.site.test/merged.css>",
            "<link rel=stylesheet integrity=sha256-AAAA href=https://img.site.test/merged.css>",
        ),
    ] {
        let (rules, page) = (rules(), url("https://www.site.test/"));
        let head = PageHead::rewrite(&rules, &page, StatusCode::OK, &mut head(&[]), false);
        let mut rewriter = html::HtmlRewriter::new(&rules, &page, head, None);
        let mut out = Vec::new();
        rewriter.write(link.as_bytes(), &mut out);
        rewriter.end(&mut out);
        assert_eq!(String::from_utf8(out).unwrap(), written);
    }
}

#[test]
fn module_preload_needs_no_nonce_with_strict_dynamic() {
    let policy = "script-src 'nonce-abc' 'strict-dynamic'";
    for (link, is_rewritten) in [
        ("<link rel=modulepreload href=https://cdn.test/a.mjs>", true),
        (
            "<link rel=preload as=script href=https://cdn.test/a.mjs>",
            false,
        ),
        (
            "<link rel=preload as=script nonce=abc href=https://cdn.test/a.mjs>",
            true,
        ),
        (
            "<script type=module src=https://cdn.test/a.mjs></script>",
            false,
        ),
    ] {
        let (rules, page) = (rules(), url("https://www.site.test/"));
        let mut fields = head(&[("content-security-policy", policy)]);
        let head = PageHead::rewrite(&rules, &page, StatusCode::OK, &mut fields, false);
        let mut rewriter = html::HtmlRewriter::new(&rules, &page, head, None);
        let mut out = Vec::new();
        rewriter.write(link.as_bytes(), &mut out);
        rewriter.end(&mut out);
        let out = String::from_utf8(out).unwrap();
        assert_eq!(
            out.contains("/.spdy/1/-/s/cdn.test/a.mjs"),
            is_rewritten,
            "{out}"
        );
    }
}
