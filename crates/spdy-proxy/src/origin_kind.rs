//! Whether a response comes from a site's own origin or from another host.

/// Which origin a response comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OriginKind {
    /// The site's own.
    Site,
    /// Another host, whose resources are proxied under the site's name.
    ThirdParty,
}
