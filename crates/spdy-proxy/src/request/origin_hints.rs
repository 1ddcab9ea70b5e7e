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

/// The most 103 responses of one origin response that are passed.
const MAX_HEADS: usize = 8;
/// The most `Link` fields of one origin response that are passed.
const MAX_LINKS: usize = 64;
/// The fields of a 103 that a page's policies are read from.
const POLICIES: [HeaderName; 1] = [header::CONTENT_SECURITY_POLICY];

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
    heads: Arc<Mutex<usize>>,
}

impl OriginHints {
    /// For a client that accepts `client` hints, and got those in `hinted`.
    pub(crate) fn new(client: EarlyHints, hinted: HintedUrls) -> Self {
        Self {
            client,
            hinted,
            heads: Arc::default(),
        }
    }

    /// Passes the links of the interim response `head` for the page at `page`. With `rules` its links are rewritten, with what is known of
    /// the site.
    pub(crate) fn pass(
        &self,
        head: &response::Parts,
        page: &Url,
        rules: Option<&Rules>,
        facts: &dyn SiteFacts,
    ) {
        if head.status != StatusCode::EARLY_HINTS {
            return;
        }
        {
            let mut heads = self.heads.lock();
            if *heads >= MAX_HEADS {
                return;
            }
            *heads += 1;
        }
        let mut fields = HeaderMap::new();
        for name in POLICIES.iter().chain([&header::LINK]) {
            for value in head.headers.get_all(name).iter().take(MAX_LINKS) {
                fields.append(name.clone(), value.clone());
            }
        }
        if let Some(rules) = rules {
            // As the page will be: its own head comes later.
            let html = HeaderValue::from_static("text/html");
            fields.insert(header::CONTENT_TYPE, html);
            let status = StatusCode::OK;
            PageHead::rewrite_with_facts(rules, page, status, &mut fields, false, Some(facts));
        }
        let mut links = HeaderMap::new();
        for value in fields.get_all(header::LINK) {
            if self.is_new(value, page) {
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
