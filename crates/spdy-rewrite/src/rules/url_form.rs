//! How moved URLs are written, before the path of what they lead to.
//!
//! ```text
//!  full      /.spdy/1/<cap>/<s|p>/<host>[~<port>]/<path>     urls/proxied_url.rs
//!  literal   /<host>/<path>                                  as in the paper that this follows (Mineki and others)
//! ```
//!
//! The literal form is for laboratories, where one is held against the other. It has neither scheme nor port, so these are those of
//! the entry that has the host, the first of several; it has no room for capabilities, so nothing is moved that needs one; and what the
//! site itself has below `/<host>/` is out of reach. What a request may have is judged alike in both.

/// The version of the full form.
pub(crate) const VERSION: &str = "1";

/// What stands for a capability where the host is listed.
pub(crate) const LISTED: &str = "-";

/// How moved URLs are written.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum UrlForm {
    #[default]
    Full,
    Literal,
}
