//! The location of a page: on its own host, and as the browser sees it.
//!
//! For a page of the site itself the two are equal, under any name in the request. A page of a host with an alias
//! (`rules/host_aliases.rs`) was written for the host, and is loaded from the alias.

use url::Url;

use crate::urls::proxied_url::ProxiedUrl;

/// The location of a page: the meaning of `'self'` in its policy, as received and as sent on.
#[derive(Clone, Debug)]
pub(crate) struct PageLocation {
    /// On its own host.
    pub(crate) original: Url,
    /// In the browser.
    pub(crate) seen: Url,
}

impl PageLocation {
    /// A page of the site itself.
    pub(crate) fn of_site(page: &Url) -> Self {
        Self {
            original: page.clone(),
            seen: page.clone(),
        }
    }

    /// A page of a host with an alias, which was requested as `moved`.
    pub(crate) fn for_alias(moved: &ProxiedUrl) -> Self {
        Self {
            original: moved.url().clone(),
            seen: Url::parse(&moved.path()).expect("an origin and a target that was checked"),
        }
    }

    /// True if it is a page of a host with an alias.
    pub(crate) fn is_named(&self) -> bool {
        self.original.origin() != self.seen.origin()
    }
}
