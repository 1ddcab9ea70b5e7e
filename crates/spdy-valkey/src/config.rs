//! The configuration of the tier: the nodes of the cluster, limits and timeouts.

use std::fmt;
use std::time::Duration;

use crate::key_names::{KeyNames, MAX_PREFIX_BYTES};

/// The configuration of the tier.
#[derive(Clone)]
pub struct Config {
    /// Some nodes of the cluster, which know the others: `redis://host:port`, or `rediss://` for TLS, with user and password if
    /// required.
    pub nodes: Vec<String>,
    /// Certificate authorities of the nodes, PEM; `None`: those of the system.
    pub authorities: Option<Vec<u8>>,
    /// Prefix of all keys. It must be the same for all caches that share the tier.
    pub prefix: String,
    /// The largest body that is stored, bytes.
    pub max_object_bytes: u64,
    /// How long an object is stored.
    pub lifetime: Duration,
    /// Total timeout of a request to the tier.
    pub timeout: Duration,
    /// The interval for reading others' purges, and for probing the parts of the cluster.
    pub poll: Duration,
}

impl Config {
    /// The prefix of all keys.
    pub(crate) fn names(&self) -> Result<KeyNames, ConfigError> {
        let found = || self.prefix.clone();
        KeyNames::new(&self.prefix).ok_or_else(|| ConfigError::Prefix { found: found() })
    }
}

/// Formats without users and passwords.
impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<_> = self.nodes.iter().map(|node| redact(node)).collect();
        f.debug_struct("Config")
            .field("nodes", &nodes)
            .field("prefix", &self.prefix)
            .field("max_object_bytes", &self.max_object_bytes)
            .field("lifetime", &self.lifetime)
            .field("timeout", &self.timeout)
            .field("poll", &self.poll)
            .finish_non_exhaustive()
    }
}

impl Default for Config {
    /// No nodes; bodies of 1 MiB, stored for a day; 100 ms for a request; a poll every second.
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            authorities: None,
            prefix: "spdy:".to_owned(),
            max_object_bytes: 1 << 20,
            lifetime: Duration::from_secs(24 * 60 * 60),
            timeout: Duration::from_millis(100),
            poll: Duration::from_secs(1),
        }
    }
}

/// Why the tier cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The prefix would put keys into wrong slots.
    #[error("prefix is {found:?}, expected at most {MAX_PREFIX_BYTES} bytes without braces")]
    Prefix {
        /// The prefix.
        found: String,
    },
    /// The client rejects the addresses, or the certificates.
    #[error("invalid cluster configuration: {0}")]
    Cluster(String),
    /// The system returned no random bytes for a name.
    #[error("cannot get random numbers: {0}")]
    Chance(#[from] getrandom::Error),
}

/// The URL of a node without user and password.
pub(crate) fn redact(node: &str) -> String {
    match (node.split_once("://"), node.rsplit_once('@')) {
        (Some((scheme, _)), Some((_, place))) => format!("{scheme}://{place}"),
        (None, Some((_, place))) => place.to_owned(),
        (_, None) => node.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        let config = Config {
            nodes: vec!["redis://user:p@ssword@a.test:6379".to_owned()],
            ..Config::default()
        };
        let shown = format!("{config:?}");
        assert!(shown.contains("a.test:6379"), "{shown}");
        assert!(
            !shown.contains("ssword") && !shown.contains("user"),
            "{shown}"
        );
    }
}
