//! Errors of the configuration.

use crate::kind::Kind;

/// What is wrong with a configuration.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RulesError {
    /// The site's URL is no origin.
    #[error("site is \"{got}\", expected https://host[:port] or http://host[:port]")]
    Site {
        /// What came.
        got: String,
    },
    /// The prefix is not one segment in slashes.
    #[error("prefix is \"{got}\", expected one path segment in slashes, such as /.spdy/")]
    Prefix {
        /// What came.
        got: String,
    },
    /// A host's name or pattern.
    #[error("{field} \"{got}\": {why}")]
    Host {
        /// Where it stands.
        field: &'static str,
        /// What came.
        got: String,
        /// What is wrong with it.
        why: String,
    },
    /// A path that no URL has in this form.
    #[error(
        "{field} \"{got}\": expected a path that begins with /, and ends with / to include all paths below it"
    )]
    Path {
        /// Where it stands.
        field: &'static str,
        /// What came.
        got: String,
    },
    /// What is excepted is not a part of what is moved.
    #[error("hosts.except \"{got}\": expected a path below hosts.path \"{whole}\"")]
    NotWithin {
        /// What came.
        got: String,
        /// What it was to be a part of.
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
    #[error("lazy_attributes \"{got}\": expected an attribute name that starts with data-")]
    Attribute {
        /// What came.
        got: String,
    },
    /// The zone of named hosts.
    #[error("names_under \"{got}\": {why}")]
    Zone {
        /// What came.
        got: String,
        /// What is wrong with it.
        why: String,
    },
    /// A host that is to have a name, and cannot.
    #[error("hosts.mode of {host} is \"name\": {why}")]
    Alias {
        /// The host.
        host: String,
        /// What is wrong with it.
        why: &'static str,
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
    #[error("limits.{key}: expected 1 to {most}, found {got}")]
    Limit {
        /// Its key.
        key: &'static str,
        /// What came.
        got: u64,
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
