//! How a page loads a resource, as far as the client states it: what it is used as, and whether the page may read it.

use crate::kind::Kind;

/// How the page loads the resource, as far as the client states it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Load {
    /// The kind that the page uses it as; `None` if the client does not state it, or fetches from a script.
    pub expected: Option<Kind>,
    /// Whether the page may read the resource.
    pub mode: FetchMode,
    /// True if the client states that a page loads it: only then may it be redirected.
    pub is_subresource: bool,
    /// True for GET or HEAD. The answer to any other method is never a redirect to the host: the host has already acted on it.
    pub is_safe_method: bool,
    /// True if a document of the resource's own origin loads it, as far as the client states it.
    pub is_same_origin: bool,
}

/// Whether the page may read what it loads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FetchMode {
    /// Yes: the other host must have allowed it.
    Cors,
    /// No: the page shows it or runs it.
    NoCors,
    /// The client does not state it, as before 2019.
    Unknown,
}

impl Load {
    /// Whether the client may be sent to the host itself once that has answered.
    pub fn allows_redirect(&self) -> bool {
        self.is_subresource && self.is_safe_method
    }

    /// True if the upstream request has the site as its Origin; responses with and without it are stored separately.
    pub fn sends_origin(&self) -> bool {
        self.mode != FetchMode::NoCors
    }
}
