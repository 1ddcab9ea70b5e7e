//! Results of rewriting pages and style sheets, for all sites.

use std::sync::Arc;

use crate::request::proxy_request::ProxyRequest;
use crate::rewrite::page_text::PageTexts;
use crate::rewrite::refetch::RefetchHistory;
use crate::rewrite::site_observations::SiteObservations;
use crate::rewrite::stylesheet_index::StylesheetIndex;
use crate::telemetry::page_reports::PageReports;

/// Results of rewriting, and reports on them.
#[derive(Debug, Default)]
pub struct Pages {
    pub(crate) stylesheets: Arc<StylesheetIndex>,
    pub(crate) refetches: RefetchHistory,
    pub(crate) texts: PageTexts,
    /// Reports on pages.
    pub reports: Arc<PageReports>,
}

impl Pages {
    /// What was observed of the site of `request`, for this request.
    pub(crate) fn observations(&self, request: &ProxyRequest) -> SiteObservations {
        SiteObservations::new(self.stylesheets.clone(), self.reports.clone(), request)
    }
}
