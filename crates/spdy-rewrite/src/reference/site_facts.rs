//! Facts about a site that come from earlier responses: the head and the text of a page alone do not contain them.
//!
//! The cache of responses supplies them. The output that depends on them may differ from one time to the next; each version is correct.

use url::Url;

use crate::kind::Kinds;
use crate::reference::integrity::IntegrityState;

/// The facts that a cache has, for one page.
pub trait SiteFacts: std::fmt::Debug + Send + Sync {
    /// The integrity state of the sheet at `url`, which the page pins by `metadata`; see `stylesheet_integrity`.
    fn stylesheet_integrity(&self, url: &Url, metadata: &str) -> IntegrityState;

    /// The kinds as which the resource at `url` is guarded; see [`CspGuard`](crate::csp::guard::CspGuard).
    fn guarded_kinds(&self, url: &Url) -> Kinds {
        let _ = url;
        Kinds::NONE
    }

    /// True if at its last rewrite the page had references to the origin of `url`, and all of them were rewritten; `None` if the
    /// page was not seen, or had none.
    fn all_rewritten(&self, url: &Url) -> Option<bool> {
        let _ = url;
        None
    }
}
