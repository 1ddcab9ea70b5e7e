//! The hashes of a page's style sheets in an accelerator that has fetched them: as their hosts have them and as it serves them. A
//! page that pins a style sheet then gets the hash of the rewritten one.

use std::collections::BTreeMap;

use spdy_rewrite::reference::integrity::{self, Digests, IntegrityState};
use url::Url;

use crate::accelerator::rewrite_context::place;

/// The hashes of style sheets by [place]: original, then served.
#[derive(Debug, Default)]
pub(super) struct KnownStylesheets(BTreeMap<String, (Digests, Digests)>);

impl KnownStylesheets {
    /// Records the style sheet at `url`, which is served as `served`.
    pub(super) fn record(&mut self, url: &Url, original: &[u8], served: &[u8]) {
        let digests = (Digests::of(original), Digests::of(served));
        self.0.insert(place(url).to_owned(), digests);
    }

    /// The integrity state of the style sheet at `url`, which a page pins by `metadata`.
    pub(super) fn integrity(&self, url: &Url, metadata: &str) -> IntegrityState {
        match self.0.get(place(url)) {
            Some((original, served)) => integrity::integrity_state(metadata, original, served),
            None => IntegrityState::Unknown,
        }
    }
}
