//! One page of the site, rewritten.

use std::sync::Arc;

use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use spdy_rewrite::html::HtmlRewriter;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::reference::page_report::PageReport;
use spdy_rewrite::rules::Rules;

use super::{rules, url};

pub(crate) const PAGE: &str = "https://www.site.test/dir/page.html";
pub(crate) const CDN: &str = "/.spdy/1/-/s/cdn.test";

pub(crate) fn rewrite_with(
    rules: &Arc<Rules>,
    headers: &mut HeaderMap,
    page: &[u8],
) -> (Vec<u8>, PageReport) {
    let head = PageHead::rewrite(rules, &url(PAGE), StatusCode::OK, headers, true);
    let mut rewriter = HtmlRewriter::new(rules, &url(PAGE), head, None);
    let mut out = Vec::new();
    rewriter.write(page, &mut out);
    let report = rewriter.end(&mut out);
    (out, report)
}

pub(crate) fn html(content_type: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_str(content_type).unwrap());
    headers
}

pub(crate) fn rewritten(page: &str) -> String {
    let (out, _) = rewrite_with(
        &rules(),
        &mut html("text/html; charset=utf-8"),
        page.as_bytes(),
    );
    String::from_utf8(out).unwrap()
}

/// `page` with `{cdn}` for where cdn.test is moved to.
#[track_caller]
pub(crate) fn becomes(page: &str, expected: &str) {
    assert_eq!(rewritten(page), expected.replace("{cdn}", CDN), "{page}");
}

#[track_caller]
pub(crate) fn stays(page: &str) {
    let (out, report) = rewrite_with(
        &rules(),
        &mut html("text/html; charset=utf-8"),
        page.as_bytes(),
    );
    assert_eq!(String::from_utf8(out).unwrap(), page);
    assert_eq!(report.proxied, 0, "{page}");
}
