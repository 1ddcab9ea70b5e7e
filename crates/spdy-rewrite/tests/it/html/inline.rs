//! What stands in a page itself, under policies that admit it by a hash, by a nonce, or whatever it is.

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::reference::page_report::PageReport;

use crate::support::{rules, url};

const POLICY: &str = "content-security-policy";
const REPORT_ONLY: &str = "content-security-policy-report-only";

fn rewritten(field: &'static str, policy: &str, page: &str) -> (String, PageReport) {
    let (rules, at) = (rules(), url("https://www.site.test/"));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    let policy = HeaderValue::from_str(policy).unwrap();
    headers.insert(HeaderName::from_static(field), policy);
    let head = PageHead::rewrite(&rules, &at, StatusCode::OK, &mut headers, true);
    let mut rewriter = HtmlRewriter::new(&rules, &at, head, None);
    let mut out = Vec::new();
    rewriter.write(page.as_bytes(), &mut out);
    let report = rewriter.end(&mut out);
    (String::from_utf8(out).unwrap(), report)
}

const STYLE: &str = "<style nonce=n>b{background:url(https://cdn.test/a.png)}</style>";
const ATTRIBUTE: &str = "<b style='background:url(https://cdn.test/a.png)'>";
const MAP: &str =
    "<script type=importmap nonce=n>{\"imports\":{\"a\":\"https://cdn.test/a.js\"}}</script>";

#[test]
fn text_with_csp_hash_is_unchanged() {
    for (policy, page) in [
        ("style-src 'sha256-AAAA'; img-src *", STYLE),
        ("style-src 'unsafe-inline' 'sha256-AAAA'", STYLE),
        ("style-src 'unsafe-inline' 'nonce-other'", STYLE),
        ("default-src https: 'SHA512-AAAA'", STYLE),
        (
            "style-src-elem 'sha256-AAAA'; style-src 'unsafe-inline'",
            STYLE,
        ),
        ("style-src 'unsafe-hashes' 'sha256-AAAA'", ATTRIBUTE),
        ("style-src 'nonce-n'", ATTRIBUTE),
        (
            "style-src-attr 'sha256-AAAA' 'unsafe-hashes'; style-src 'unsafe-inline'",
            ATTRIBUTE,
        ),
        ("script-src https: 'sha256-AAAA'", MAP),
        ("script-src https: 'unsafe-inline' 'strict-dynamic'", MAP),
        ("script-src 'self' https://cdn.test", MAP),
        ("style-src 'unsafe-inline', style-src 'sha256-AAAA'", STYLE),
    ] {
        let (out, report) = rewritten(POLICY, policy, page);
        assert_eq!(out, page, "{policy}");
        assert_eq!(report.skipped_by_reason.get("policy"), Some(&1), "{policy}");
        assert_eq!(report.proxied, 0, "{policy}");
    }
}

#[test]
fn text_allowed_regardless_of_content_is_rewritten() {
    for (policy, page) in [
        ("style-src 'nonce-n' 'sha256-AAAA'", STYLE),
        ("style-src 'unsafe-inline'", STYLE),
        ("style-src 'unsafe-inline' 'strict-dynamic'", STYLE),
        (
            "style-src-elem 'unsafe-inline'; style-src 'sha256-AAAA'",
            STYLE,
        ),
        ("script-src 'sha256-AAAA'", STYLE),
        (
            "style-src-attr 'unsafe-inline'; style-src 'nonce-n'",
            ATTRIBUTE,
        ),
        ("script-src https: 'nonce-n'", MAP),
        ("script-src https: 'unsafe-inline'", MAP),
    ] {
        let (out, report) = rewritten(POLICY, policy, page);
        assert!(out.contains("/.spdy/1/-/s/cdn.test/a"), "{policy}: {out}");
        assert_eq!(report.proxied, 1, "{policy}");
    }
}

#[test]
fn report_only_policy_gets_no_new_reports() {
    for (policy, page, is_rewritten) in [
        ("style-src 'sha256-AAAA'", STYLE, false),
        ("style-src 'nonce-n' 'sha256-AAAA'", STYLE, true),
        // It reports the one as it would the other.
        ("style-src 'self'", STYLE, true),
        ("script-src 'sha256-AAAA'", MAP, false),
    ] {
        let (out, _) = rewritten(REPORT_ONLY, policy, page);
        assert_eq!(out != page, is_rewritten, "{policy}");
    }
    // A map that is put in would be reported.
    let module = "<script type=module src=/m.js></script>";
    for (policy, is_mapped) in [("script-src 'self'", false), ("img-src 'self'", true)] {
        let (out, report) = rewritten(REPORT_ONLY, policy, module);
        assert_eq!(out != module, is_mapped, "{policy}: {out}");
        assert_eq!(report.import_map_added, is_mapped, "{policy}");
    }
}

#[test]
fn integrity_policy_headers_are_unchanged() {
    let policies = [
        (
            "integrity-policy",
            "blocked-destinations=(script), endpoints=(main)",
        ),
        (
            "integrity-policy-report-only",
            "blocked-destinations=(script style)",
        ),
    ];
    let (rules, at) = (rules(), url("https://www.site.test/"));
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html"));
    for (name, value) in policies {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    let head = PageHead::rewrite(&rules, &at, StatusCode::OK, &mut headers, true);
    for (name, value) in policies {
        assert_eq!(headers[name], value);
    }
    // And what is pinned stays pinned where it is moved to.
    let mut rewriter = HtmlRewriter::new(&rules, &at, head, None);
    let mut out = Vec::new();
    let script = b"<script integrity=sha256-AAAA crossorigin src=https://cdn.test/a.js></script>";
    rewriter.write(script, &mut out);
    assert_eq!(rewriter.end(&mut out).proxied, 1);
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.contains("integrity=sha256-AAAA") && out.contains("/.spdy/"),
        "{out}"
    );
}
