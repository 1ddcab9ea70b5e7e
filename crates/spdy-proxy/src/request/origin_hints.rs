//! Early hints of an origin (RFC 8297), passed to the client before the response: links are rewritten as in the response, and each is sent
//! once.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, StatusCode, response};
use parking_lot::Mutex;
use spdy_net::interim::early_hints::EarlyHints;
use spdy_rewrite::html::page_head::PageHead;
use spdy_rewrite::reference::site_facts::SiteFacts;
use spdy_rewrite::rules::Rules;
use url::Url;

use crate::sites::path_rules::PathRule;

/// Maximum number of 103 responses of one origin response that are passed.
const MAX_HEADS: usize = 8;
/// Maximum number of `Link` fields of one origin response that are passed.
const MAX_LINKS: usize = 64;
/// The fields of a 103 that are used: a page's policies and its links.
const HINT_FIELDS: [HeaderName; 2] = [header::CONTENT_SECURITY_POLICY, header::LINK];

/// The URLs that a client was hinted for one request, by the proxy or by the origin. Clones share them.
#[derive(Clone, Debug, Default)]
pub(crate) struct HintedUrls(Arc<Mutex<BTreeSet<String>>>);

impl HintedUrls {
    /// Records `url`; `false` if it was recorded before.
    pub(crate) fn insert(&self, url: &str) -> bool {
        self.0.lock().insert(url.to_owned())
    }
}

/// Passes the early hints of the origin to the client of one request.
#[derive(Clone, Debug)]
pub(crate) struct OriginHints {
    client: EarlyHints,
    hinted: HintedUrls,
    passed: Arc<Mutex<PassedHints>>,
}

/// The hints of one response that were passed.
#[derive(Debug, Default)]
struct PassedHints {
    heads: usize,
    links: usize,
}

impl OriginHints {
    /// For a client that accepts `client` hints, and got those in `hinted`.
    pub(crate) fn new(client: EarlyHints, hinted: HintedUrls) -> Self {
        Self {
            client,
            hinted,
            passed: Arc::default(),
        }
    }

    /// Passes the links of the interim response `head` for the page at `page`, whose headers `path_rule` changes. With `rules` its links are
    /// rewritten, with what is known of the site.
    pub(crate) fn pass(
        &self,
        head: &response::Parts,
        page: &Url,
        path_rule: Option<&PathRule>,
        rules: Option<&Rules>,
        facts: &dyn SiteFacts,
    ) {
        if head.status != StatusCode::EARLY_HINTS {
            return;
        }
        {
            let mut passed = self.passed.lock();
            if passed.heads >= MAX_HEADS {
                return;
            }
            passed.heads += 1;
        }
        let mut edited = HeaderMap::new();
        for name in HINT_FIELDS {
            for value in head.headers.get_all(&name).iter().take(MAX_LINKS) {
                edited.append(name.clone(), value.clone());
            }
        }
        let mut fields = HeaderMap::new();
        if let Some(rule) = path_rule {
            rule.edit_response(&mut edited);
        }
        for name in HINT_FIELDS {
            for value in edited.get_all(&name) {
                fields.append(name.clone(), value.clone());
            }
        }
        if let Some(rules) = rules {
            // The page is assumed to be HTML, because its own head comes later.
            let html = HeaderValue::from_static("text/html");
            fields.insert(header::CONTENT_TYPE, html);
            let status = StatusCode::OK;
            PageHead::rewrite_with_facts(rules, page, status, &mut fields, false, Some(facts));
        }
        let mut links = HeaderMap::new();
        for value in fields.get_all(header::LINK) {
            let mut passed = self.passed.lock();
            if passed.links < MAX_LINKS && self.is_new(value, page) {
                passed.links += 1;
                links.append(header::LINK, value.clone());
            }
        }
        if !links.is_empty() {
            self.client.send(links);
        }
    }

    /// Whether a field of one link is for a URL that the client was not hinted. Fields of several links are always new.
    fn is_new(&self, link: &HeaderValue, page: &Url) -> bool {
        let target = link.to_str().ok().and_then(|link| {
            let (target, parameters) = link.trim_start().strip_prefix('<')?.split_once('>')?;
            (!parameters.contains('<')).then_some(target)
        });
        match target.and_then(|target| page.join(target).ok()) {
            Some(url) => self.hinted.insert(url.as_str()),
            None => true,
        }
    }
}
