//! The location of a page: on its own host, and as the browser sees it.
//!
//! For a page of the site's own the two are one, under any name in the request. A page of a host with a name of its own
//! (`rules/host_aliases.rs`) was written for the host, and is read under that name.

use url::Url;

use crate::urls::proxied_url::ProxiedUrl;

/// Where a page is: what `'self'` means in its policy, as it came and as it is sent on.
#[derive(Clone, Debug)]
pub(crate) struct PageLocation {
    /// On its own host.
    pub(crate) original: Url,
    /// For the browser.
    pub(crate) seen: Url,
}

impl PageLocation {
    /// A page of the site's own.
    pub(crate) fn of_site(page: &Url) -> Self {
        Self {
            original: page.clone(),
            seen: page.clone(),
        }
    }

    /// A page of a named host, which was requested as `moved`.
    pub(crate) fn for_alias(moved: &ProxiedUrl) -> Self {
        Self {
            original: moved.url().clone(),
            seen: Url::parse(&moved.path()).expect("an origin and a target that was checked"),
        }
    }

    /// Whether it is a named host's.
    pub(crate) fn is_named(&self) -> bool {
        self.original.origin() != self.seen.origin()
    }
}
