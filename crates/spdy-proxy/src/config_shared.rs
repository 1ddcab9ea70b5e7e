//! The part of the configuration that is about what several machines keep together.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::Deserialize;
use url::Url;

/// The tier that machines share.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SharedConfig {
    /// Some nodes of the cluster, which know the others: `redis://user:password@host:port`, or `rediss://` for TLS.
    pub urls: Vec<Url>,
    /// The authority that signs the nodes' certificates, PEM. Default the system's.
    pub authority: Option<PathBuf>,
    /// What the names of all its keys begin with. Default `spdy:`.
    #[serde(default = "SharedConfig::default_prefix")]
    pub prefix: String,
    /// The largest body kept there, KiB. Default 1024.
    #[serde(default = "SharedConfig::default_object_kib")]
    pub object_kib: u64,
    /// For how long anything is kept there. Default 86400, a day.
    #[serde(default = "SharedConfig::default_ttl_s")]
    pub ttl_s: u64,
    /// How long a request waits for it before it goes on as without. Default 100.
    #[serde(default = "SharedConfig::default_timeout_ms")]
    pub timeout_ms: u64,
    /// How soon a purge is heard by the others, and that nodes are gone or back. Default 1000.
    #[serde(default = "SharedConfig::default_poll_ms")]
    pub poll_ms: u64,
}

impl SharedConfig {
    fn default_prefix() -> String {
        "spdy:".to_owned()
    }

    fn default_object_kib() -> u64 {
        1024
    }

    fn default_ttl_s() -> u64 {
        24 * 60 * 60
    }

    fn default_timeout_ms() -> u64 {
        100
    }

    fn default_poll_ms() -> u64 {
        1000
    }

    /// What is wrong with it: the key, what would do, and what is there.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, String)> {
        let schemes: BTreeSet<_> = self.urls.iter().map(Url::scheme).collect();
        let is_node = |url: &Url| matches!(url.scheme(), "redis" | "rediss") && url.has_host();
        let got = || {
            let shown: Vec<String> = self.urls.iter().map(without_password).collect();
            shown.join(", ")
        };
        if schemes.len() != 1 || !self.urls.iter().all(is_node) {
            let want = "redis:// or rediss:// URLs of nodes, all with TLS or none";
            return Some(("cache.shared.urls", want, got()));
        }
        if self.authority.is_some() && !schemes.contains("rediss") {
            return Some(("cache.shared.authority", "rediss:// URLs beside it", got()));
        }
        for (what, number) in [
            ("cache.shared.object_kib", self.object_kib),
            ("cache.shared.ttl_s", self.ttl_s),
            ("cache.shared.timeout_ms", self.timeout_ms),
            ("cache.shared.poll_ms", self.poll_ms),
        ] {
            if number == 0 {
                return Some((what, "1 or more", number.to_string()));
            }
        }
        None
    }
}

/// A URL as it may be shown: whoever reads an error need not know the password.
fn without_password(url: &Url) -> String {
    let place = url.authority().rsplit('@').next().unwrap_or_default();
    format!("{}://{place}", url.scheme())
}
