//! Distinguishes responses of a site's own origin from those of another host.

/// The origin of a response.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OriginKind {
    /// The site's own.
    Site,
    /// Another host, whose resources are proxied under the site's name.
    ThirdParty,
}
