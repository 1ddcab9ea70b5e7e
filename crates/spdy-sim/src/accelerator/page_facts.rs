//! What the rewriter asks the accelerator about a page's resources.

use std::sync::Arc;

use spdy_proxy::sites::site::Site;
use spdy_rewrite::kind::Kinds;
use spdy_rewrite::reference::integrity::IntegrityState;
use spdy_rewrite::reference::site_facts::SiteFacts;
use url::Url;

use crate::accelerator::known_stylesheets::KnownStylesheets;

/// The facts that an accelerator with these `stylesheets` has. The policies of the site's pages must be recorded before.
#[derive(Debug)]
pub(super) struct PageFacts {
    pub(super) site: Arc<Site>,
    pub(super) stylesheets: Arc<KnownStylesheets>,
}

impl SiteFacts for PageFacts {
    fn stylesheet_integrity(&self, url: &Url, metadata: &str) -> IntegrityState {
        self.stylesheets.integrity(url, metadata)
    }

    fn guarded_kinds(&self, url: &Url) -> Kinds {
        self.site.pages.guarded_kinds(&self.site.rules, url)
    }
}
