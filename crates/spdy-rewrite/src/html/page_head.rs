//! The head of a page: decides if the page is rewritten at all, and rewrites its head.

use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use url::Url;

use crate::csp::Policies;
use crate::csp::inline;
use crate::csp::page_location::PageLocation;
use crate::html::link_header;
use crate::reference::Reference;
use crate::reference::page_report::PageSkipReason;
use crate::reference::site_facts::SiteFacts;
use crate::referrer::ReferrerScope;
use crate::response::rewritten_head;
use crate::rules::Rules;
use crate::urls::proxied_url::ProxiedUrl;

/// The facts from the head of a page, for [`HtmlRewriter`](crate::html::HtmlRewriter).
#[derive(Clone, Debug)]
pub struct PageHead {
    pub(crate) policies: Policies,
    /// Which hosts get a `Referer` from the page.
    pub(crate) referrer_scope: ReferrerScope,
    /// The page's URL in the browser, if it is a page of a host with an alias.
    pub(crate) browser_base: Option<Url>,
    /// The charset of its Content-Type.
    pub(crate) charset: Option<String>,
    /// Why the page is passed on unchanged, if so: its head is then unchanged too.
    pub left: Option<PageSkipReason>,
    /// The references of its Link fields.
    pub references: Vec<Reference>,
}

impl PageHead {
    /// Parses the head of the site's own response for `page`, and rewrites it in place if the page is to be rewritten: policies,
    /// links, and the fields about the origin's bytes. `page` is its URL in the browser.
    ///
    /// `is_exact`: see `rewritten::mark_etag`.
    pub fn rewrite(
        rules: &Rules,
        page: &Url,
        status: StatusCode,
        headers: &mut HeaderMap,
        is_exact: bool,
    ) -> Self {
        Self::rewrite_with_facts(rules, page, status, headers, is_exact, None)
    }

    /// The same, with the facts about the site in `seen`.
    pub fn rewrite_with_facts(
        rules: &Rules,
        page: &Url,
        status: StatusCode,
        headers: &mut HeaderMap,
        is_exact: bool,
        seen: Option<&dyn SiteFacts>,
    ) -> Self {
        let content_type = content_type(headers);
        let charset = charset(content_type);
        let referrer_scope = ReferrerScope::from_headers(headers);
        let left = left(rules, page, status, headers, content_type);
        if left.is_some() {
            return Self {
                policies: Policies::none(page),
                referrer_scope,
                browser_base: None,
                charset,
                left,
                references: Vec::new(),
            };
        }
        let policies = Policies::rewrite_head(rules, page, headers);
        let references = link_header::rewrite(rules, page, &policies, headers, seen);
        rewritten_head::mark_etag(rules, headers, is_exact);
        Self {
            policies,
            referrer_scope,
            browser_base: None,
            charset,
            left,
            references,
        }
    }

    /// The same for a page of a host with an alias, which was requested as `moved`. Its policies are always rewritten, since they
    /// apply on the alias; no reference is moved under the site's name, and its Link fields are removed.
    pub fn rewrite_alias(
        rules: &Rules,
        moved: &ProxiedUrl,
        status: StatusCode,
        headers: &mut HeaderMap,
    ) -> Self {
        let content_type = content_type(headers);
        let charset = charset(content_type);
        let left = any_page_skip_reason(status, headers, content_type);
        let referrer_scope = ReferrerScope::from_headers(headers);
        let at = PageLocation::for_alias(moved);
        let seen_from = Some(at.seen.clone());
        let policies = Policies::rewrite_head_at(at, rules, headers);
        if left.is_none() {
            rewritten_head::mark_etag(rules, headers, false);
        }
        Self {
            policies,
            referrer_scope,
            browser_base: seen_from,
            charset,
            left,
            references: Vec::new(),
        }
    }
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}

/// Why a page of the site itself is passed on unchanged, if so.
fn left(
    rules: &Rules,
    page: &Url,
    status: StatusCode,
    headers: &HeaderMap,
    content_type: &str,
) -> Option<PageSkipReason> {
    match any_page_skip_reason(status, headers, content_type) {
        Some(PageSkipReason::NotHtml) => Some(PageSkipReason::NotHtml),
        _ if rules.skips_page(page.path()) => Some(PageSkipReason::OptOut),
        None if inline::has_csp_sandbox(headers) => Some(PageSkipReason::Sandboxed),
        left => left,
    }
}

/// The same for any page.
fn any_page_skip_reason(
    status: StatusCode,
    headers: &HeaderMap,
    content_type: &str,
) -> Option<PageSkipReason> {
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    let is_coded = |value: &http::HeaderValue| !value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !essence.eq_ignore_ascii_case("text/html") {
        Some(PageSkipReason::NotHtml)
    } else if rewritten_head::has_no_transform(headers) {
        Some(PageSkipReason::NoTransform)
    } else if headers.get_all(CONTENT_ENCODING).iter().any(is_coded) {
        Some(PageSkipReason::ContentCoding)
    } else if status == StatusCode::PARTIAL_CONTENT {
        Some(PageSkipReason::Partial)
    } else {
        None
    }
}

/// The charset in a Content-Type.
pub fn charset(content_type: &str) -> Option<String> {
    content_type.split(';').skip(1).find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("charset")
            .then(|| value.trim().trim_matches('"').to_owned())
    })
}
