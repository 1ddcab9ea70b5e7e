//! Errors of the configuration.

use crate::kind::Kind;

/// What is wrong with a configuration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RulesError {
    /// The site's URL is no origin.
    #[error("site is \"{found}\", expected https://host[:port] or http://host[:port]")]
    Site {
        /// The value found.
        found: String,
    },
    /// The prefix is not one segment in slashes.
    #[error("prefix is \"{found}\", expected one path segment in slashes, such as /.spdy/")]
    Prefix {
        /// The value found.
        found: String,
    },
    /// A host's name or pattern.
    #[error("{field} \"{found}\": {reason}")]
    Host {
        /// Where it stands.
        field: &'static str,
        /// The value found.
        found: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A path that no URL has in this form.
    #[error(
        "{field} \"{found}\": expected a path that begins with /, and ends with / to include all paths below it"
    )]
    Path {
        /// Where it stands.
        field: &'static str,
        /// The value found.
        found: String,
    },
    /// What is excepted is not a part of what is moved.
    #[error("hosts.except \"{found}\": expected a path below hosts.path \"{whole}\"")]
    NotWithin {
        /// The value found.
        found: String,
        /// The path that must contain it.
        whole: String,
    },
    /// A host of which nothing is moved.
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
    /// An attribute's name that could not be one, or that is HTML's own.
    #[error("lazy_attributes \"{found}\": expected an attribute name that starts with data-")]
    Attribute {
        /// The value found.
        found: String,
    },
    /// The zone of named hosts.
    #[error("names_under \"{found}\": {reason}")]
    Zone {
        /// The value found.
        found: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A host that is to have a name, and cannot.
    #[error("hosts.mode of {host} is \"name\": {reason}")]
    Alias {
        /// The host.
        host: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// A host under the site's own name, of a kind that needs an origin of its own.
    #[error(
        "hosts.kinds of {host} has {kind}: it needs mode = \"name\", because under the site's name it would have the rights of the site"
    )]
    NeedsAlias {
        /// The host.
        host: String,
        /// The kind.
        kind: Kind,
    },
    /// A limit of a host's answers.
    #[error("limits.{key}: expected 1 to {most}, found {found}")]
    Limit {
        /// Its key.
        key: &'static str,
        /// The value found.
        found: u64,
        /// The most that it may be.
        most: u64,
    },
    /// A literal URL has no capability that would permit requests to an unlisted host.
    #[error(
        "discover is true, expected false with literal URLs, which cannot contain a capability"
    )]
    Literal,
    /// Capabilities are needed, and there is no key to make them.
    #[error("{what} needs a key for capabilities")]
    NoKeys {
        /// What needs them.
        what: &'static str,
    },
}
