//! What was observed of a site that decides how its pages are rewritten: results of style sheets, guarded hosts, and whether all references
//! to a host are rewritten.

use std::sync::Arc;

use parking_lot::Mutex;
use spdy_rewrite::kind::{Kind, Kinds};
use spdy_rewrite::reference::integrity::IntegrityState;
use spdy_rewrite::reference::site_facts::SiteFacts;
use url::Url;

use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::rewrite_facts::RewriteFacts;
use crate::rewrite::stylesheet_index::StylesheetIndex;
use crate::sites::site::Site;
use crate::telemetry::page_reports::PageReports;

/// What was observed of one site, for a page of it.
#[derive(Debug)]
pub(crate) struct SiteObservations {
    stylesheets: Arc<StylesheetIndex>,
    reports: Arc<PageReports>,
    site: Arc<Site>,
    /// The page, as reports know it.
    page: Option<String>,
    /// The facts that were looked up so far.
    facts: Mutex<RewriteFacts>,
}

impl SiteObservations {
    /// For the request `request` of the site.
    pub(crate) fn new(
        stylesheets: Arc<StylesheetIndex>,
        reports: Arc<PageReports>,
        request: &ProxyRequest,
    ) -> Self {
        Self {
            stylesheets,
            reports,
            site: request.site.clone(),
            page: request.url().map(String::from),
            facts: Mutex::default(),
        }
    }

    /// What is known of the sheet at `url`, which the page pins by `metadata`, and whether it is not served under the site's name.
    pub(crate) fn stylesheet_state(&self, url: &Url, metadata: &str) -> (IntegrityState, bool) {
        let rules = &self.site.rules;
        let is_guarded = self.guarded_kinds(url).has(Kind::Style);
        let state = self.stylesheets.integrity_state(rules, url, metadata);
        (state, is_guarded)
    }

    /// The facts that the page was rewritten with so far.
    pub(crate) fn facts(&self) -> RewriteFacts {
        let facts = self.facts.lock();
        facts.clone()
    }
}

impl SiteFacts for SiteObservations {
    fn stylesheet_integrity(&self, url: &Url, metadata: &str) -> IntegrityState {
        let (state, is_guarded) = self.stylesheet_state(url, metadata);
        let mut facts = self.facts.lock();
        facts.add_pin(url, metadata, &state, is_guarded);
        state
    }

    fn guarded_kinds(&self, url: &Url) -> Kinds {
        self.site.pages.guarded_kinds(&self.site.rules, url)
    }

    fn all_rewritten(&self, url: &Url) -> Option<bool> {
        let origin = url.origin().ascii_serialization();
        let of_page = |page: &String| self.reports.host_counts(page, &origin);
        let count = self.page.as_ref().and_then(of_page);
        let all_rewritten = count.map(|count| count.proxied > 0 && count.skipped == 0);
        if all_rewritten != Some(true) {
            let mut facts = self.facts.lock();
            facts.add_preconnect(origin);
        }
        all_rewritten
    }
}
