//! Facts about a site that are known before one of its pages is rewritten: the page's head and text alone do not contain them.
//!
//! The cache of responses supplies them. The output that depends on them may differ from one time to the next; each version is correct.

use url::Url;

use crate::kind::Kinds;
use crate::reference::integrity::IntegrityState;

/// What a cache has seen, for one page.
pub trait SiteFacts: std::fmt::Debug + Send + Sync {
    /// What is known of the sheet at `url`, which the page pins by `metadata`; see `stylesheet_integrity`.
    fn stylesheet_integrity(&self, url: &Url, metadata: &str) -> IntegrityState;

    /// As what the thing at `url` is guarded; see [`CspGuard`](crate::csp::guard::CspGuard).
    fn guarded_kinds(&self, url: &Url) -> Kinds {
        let _ = url;
        Kinds::NONE
    }

    /// Whether, the last time, the page named something of the origin of `url` and all of that was moved; `None` if nothing of it
    /// is known.
    fn all_rewritten(&self, url: &Url) -> Option<bool> {
        let _ = url;
        None
    }
}
