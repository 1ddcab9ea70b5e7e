//! Errors of the configuration.

use crate::kind::Kind;

/// An error in the configuration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RulesError {
    /// The site's URL is not an origin.
    #[error("site is \"{found}\", expected https://host[:port] or http://host[:port]")]
    Site {
        /// The value found.
        found: String,
    },
    /// The prefix is not a single segment between slashes.
    #[error("prefix is \"{found}\", expected one path segment in slashes, such as /.spdy/")]
    Prefix {
        /// The value found.
        found: String,
    },
    /// An invalid host name or pattern.
    #[error("{field} \"{found}\": {reason}")]
    Host {
        /// The field.
        field: &'static str,
        /// The value found.
        found: String,
        /// The error.
        reason: String,
    },
    /// A query of a path that no import map would have.
    #[error(
        "hosts.path \"{path}\" has a query, which only import maps use: expected `script` in `kinds` and no `shared`"
    )]
    UselessQuery {
        /// The path with its query.
        path: String,
    },
    /// A path that is not in the form that it has in URLs.
    #[error(
        "{field} \"{found}\": expected a path that begins with /, encoded as in URLs (`%5E` for `^`), and ends with / to include all paths below it"
    )]
    Path {
        /// The field.
        field: &'static str,
        /// The value found.
        found: String,
    },
    /// An excluded path is not below the proxied path.
    #[error("hosts.except \"{found}\": expected a path below hosts.path \"{whole}\"")]
    NotWithin {
        /// The value found.
        found: String,
        /// The path that must contain it.
        whole: String,
    },
    /// An entry without kinds.
    #[error("hosts.kinds of {host} is empty: list at least one kind")]
    NoKinds {
        /// The host.
        host: String,
    },
    /// Two entries for the same host, port, scheme and path.
    #[error("{host} {path} is listed twice")]
    Duplicate {
        /// The host.
        host: String,
        /// The path.
        path: String,
    },
    /// Two entries for the same path, with different queries and different settings.
    #[error(
        "{host} {path} is listed with different queries: expected the same settings in all these entries, because the query of a request does not select an entry"
    )]
    DifferentQueries {
        /// The host.
        host: String,
        /// The path.
        path: String,
    },
    /// An invalid attribute name, or one that is reserved by HTML.
    #[error("lazy_attributes \"{found}\": expected an attribute name that starts with data-")]
    Attribute {
        /// The value found.
        found: String,
    },
    /// An invalid zone of aliases.
    #[error("names_under \"{found}\": {reason}")]
    Zone {
        /// The value found.
        found: String,
        /// The error.
        reason: String,
    },
    /// A host that cannot have an alias.
    #[error("hosts.mode of {host} is \"name\": {reason}")]
    Alias {
        /// The host.
        host: String,
        /// The reason.
        reason: &'static str,
    },
    /// A host under the site's own name, with a kind that needs its own origin.
    #[error(
        "hosts.kinds of {host} has {kind}: it needs mode = \"name\", because under the site's name it would have the rights of the site"
    )]
    NeedsAlias {
        /// The host.
        host: String,
        /// The kind.
        kind: Kind,
    },
    /// An invalid limit.
    #[error("limits.{key}: expected 1 to {most}, found {found}")]
    Limit {
        /// The key of the limit.
        key: &'static str,
        /// The value found.
        found: u64,
        /// The maximum.
        most: u64,
    },
    /// A literal URL has no capability that would permit requests to an unlisted host.
    #[error(
        "discover is true, expected false with literal URLs, which cannot contain a capability"
    )]
    Literal,
    /// Capabilities are needed, but there is no key to sign them.
    #[error("{what} needs a key for capabilities")]
    NoKeys {
        /// The setting that needs them.
        what: &'static str,
    },
}
