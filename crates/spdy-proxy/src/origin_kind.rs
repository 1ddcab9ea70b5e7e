//! Whether a response comes from a site's own origin or from another host.

/// Which origin an answer comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OriginKind {
    /// The site's own.
    Site,
    /// Some other host's, that is moved under the site's name.
    ThirdParty,
}
