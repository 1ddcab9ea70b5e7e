//! The forms of proxied URLs, before the path of the resource.
//!
//! ```text
//!  full      /.spdy/1/<cap>/<s|p>/<host>[~<port>]/<path>     urls/proxied_url.rs
//!  literal   /<host>/<path>                                  as in the paper that this follows (Mineki and others)
//! ```
//!
//! The literal form is for laboratories, to compare both. It has neither scheme nor port, so those of the host's first entry are
//! used. It has no place for capabilities, so nothing is proxied that needs one. Resources of the site itself below `/<host>/`
//! cannot be requested. The same rules apply to both forms.

/// The version of the full form.
pub(crate) const VERSION: &str = "1";

/// Placeholder for a capability if the host is listed.
pub(crate) const LISTED: &str = "-";

/// The form of proxied URLs.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum UrlForm {
    #[default]
    Full,
    Literal,
}
