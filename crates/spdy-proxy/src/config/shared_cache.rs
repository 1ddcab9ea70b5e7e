//! The part of the configuration that is about what several machines keep together.

use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use url::Url;

/// The URL of a node as it was written. It may contain a password, so errors and logs do not show it whole.
#[derive(Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct NodeUrl(String);

impl NodeUrl {
    /// The whole URL, for connecting to the node.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }

    fn parsed(&self) -> Option<Url> {
        Url::parse(&self.0).ok()
    }
}

impl fmt::Debug for NodeUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&redact(self.parsed().as_ref()))
    }
}

/// The cache tier that several machines share, on a Valkey or Redis cluster.
#[derive(Clone, Debug, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SharedConfig {
    /// Some nodes of the cluster, from which the others are discovered: `redis://user:password@host:port`, or
    /// `rediss://` for TLS.
    #[serde(deserialize_with = "node_urls")]
    pub urls: Vec<NodeUrl>,
    /// PEM of the authority that signs the nodes' certificates. Default the system's.
    pub authority: Option<PathBuf>,
    /// Prefix of all keys. Default `spdy:`.
    #[serde(default = "SharedConfig::default_prefix")]
    pub prefix: String,
    /// The largest body that is stored in the shared cache. Range: at least 1. Default 1024.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[serde(default = "SharedConfig::default_object_kib")]
    pub object_kib: u64,
    /// Lifetime of objects in the shared cache. Range: at least 1. Default 86400.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[serde(default = "SharedConfig::default_ttl_s")]
    pub ttl_s: u64,
    /// Time that a request waits for the shared cache before it continues without it. Range: at least 1. Default 100.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    #[serde(default = "SharedConfig::default_timeout_ms")]
    pub timeout_ms: u64,
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

    /// A fault in it: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, String)> {
        let urls: Vec<_> = self.urls.iter().map(NodeUrl::parsed).collect();
        let schemes: BTreeSet<_> = urls.iter().flatten().map(Url::scheme).collect();
        let is_node = |url: &Url| matches!(url.scheme(), "redis" | "rediss") && url.has_host();
        let found = || {
            let shown: Vec<String> = urls.iter().map(|url| redact(url.as_ref())).collect();
            shown.join(", ")
        };
        if schemes.len() != 1 || !urls.iter().all(|url| url.as_ref().is_some_and(is_node)) {
            let expected = "redis:// or rediss:// URLs of nodes, all with TLS or none";
            return Some(("cache.shared.urls", expected, found()));
        }
        if self.authority.is_some() && !schemes.contains("rediss") {
            return Some((
                "cache.shared.authority",
                "rediss:// URLs in cache.shared.urls",
                found(),
            ));
        }
        for (key, number) in [
            ("cache.shared.object_kib", self.object_kib),
            ("cache.shared.ttl_s", self.ttl_s),
            ("cache.shared.timeout_ms", self.timeout_ms),
        ] {
            if number == 0 {
                return Some((key, "1 or more", number.to_string()));
            }
        }
        None
    }
}

/// A URL as it may be shown.
fn redact(url: Option<&Url>) -> String {
    let Some(url) = url else {
        return "an invalid URL".to_owned();
    };
    let place = url.authority().rsplit('@').next().unwrap_or_default();
    format!("{}://{place}", url.scheme())
}

/// A list of them. What is something else is not shown, as serde would: one URL with its password, at the likeliest.
fn node_urls<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<NodeUrl>, D::Error> {
    struct Nodes;

    impl<'de> Visitor<'de> for Nodes {
        type Value = Vec<NodeUrl>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list of node URLs")
        }

        fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
            Err(E::custom("expected a list of node URLs, found a string"))
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
            let mut nodes = Vec::new();
            while let Some(node) = list.next_element()? {
                nodes.push(node);
            }
            Ok(nodes)
        }
    }

    from.deserialize_seq(Nodes)
}

/// What is wrong with a text, which shows the line that it is wrong in: from the scheme of a URL to the end of its user and
/// password, that is left out.
pub(crate) fn redact_error(error: &str) -> String {
    let lines = error
        .lines()
        .map(|line| match (line.find("://"), line.rfind('@')) {
            (Some(from), Some(to)) if from < to => format!("{}://…{}", &line[..from], &line[to..]),
            _ => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::config::env::{PREFIX, from_variables};

    const SITE: &str =
        "secret_file = '/file'\n[[site]]\nnames = ['a.test']\norigin = 'https://b.test'\n";

    #[test]
    fn node_password_is_never_printed() {
        for urls in [
            "['redis://user:sesame@a.test:none']",
            "['redis://user:sesame@a.test:1', 'http://user:sesame@b.test']",
            "['user:sesame']",
            "['redis://user:sesame@a.test:1', 7]",
            "'redis://user:sesame@a.test:1'",
            "redis://user:sesame@a.test:1",
            "['redis://user:sesame@a.test:1'",
        ] {
            let text = format!("{SITE}[cache.shared]\nurls = {urls}\n");
            let error = Config::parse(&text).expect_err("it is wrong");
            for printed in [error.to_string(), format!("{error:?}")] {
                assert!(!printed.contains("sesame"), "{urls}: {printed}");
            }
            let name = format!("{PREFIX}CACHE__SHARED__URLS");
            let variables = from_variables([(name, urls.to_owned())]);
            let error = Config::parse_with_env(SITE, &variables).expect_err("it is wrong");
            for printed in [error.to_string(), format!("{error:?}")] {
                assert!(!printed.contains("sesame"), "{urls}: {printed}");
            }
        }
        let urls = "urls = ['redis://user:sesame@a.test:1']";
        let config = Config::parse(&format!("{SITE}[cache.shared]\n{urls}\n"));
        let shared = config.expect("a valid value").cache.shared;
        let printed = format!("{shared:?}");
        assert!(printed.contains("redis://a.test:1"), "{printed}");
        assert!(!printed.contains("sesame"), "{printed}");
        let node = &shared.expect("the body has arrived").urls[0];
        assert_eq!(node.reveal(), "redis://user:sesame@a.test:1");
    }
}
