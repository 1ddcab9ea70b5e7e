//! The configuration: one TOML file, its defaults, and what is wrong with it.
//!
//! ```toml
//! [[site]]
//! names = ["www.site.test", "site.test"]
//! origin = "https://origin.site.test"
//!
//! [[site.rewrite.hosts]]
//! host = "cdn.example"
//! kinds = ["image", "style", "font"]
//! ```
//!
//! Numbers have their unit in their name. A key that nothing reads is an error, as is a value that cannot work.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;
use spdy_net::protocol::Protocol;
use url::Url;

use crate::config::cache::CacheConfig;
use crate::config::env;
use crate::config::learn::LearnConfig;
use crate::config::limits::ClientLimitsConfig;
use crate::config::listen::{ListenConfig, TlsConfig};
use crate::config::shared_cache;
use crate::config::site::SiteConfig;
use crate::config::telemetry::TelemetryConfig;
use crate::config::upstream::UpstreamConfig;
use crate::config::websocket::WebSocketConfig;

/// All of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "Configuration of spdy accelerate")
)]
pub struct Config {
    /// Where clients are let in.
    #[serde(default)]
    pub listen: ListenConfig,
    /// The accelerator's certificates.
    #[serde(default)]
    pub tls: TlsConfig,
    /// Limits for clients.
    #[serde(default)]
    pub limits: ClientLimitsConfig,
    /// What is accelerated; at least one.
    #[serde(default)]
    pub site: Vec<SiteConfig>,
    /// What is stored.
    #[serde(default)]
    pub cache: CacheConfig,
    /// How origins are contacted.
    #[serde(default)]
    pub upstream: UpstreamConfig,
    /// How many WebSockets to the sites' own origins may be open.
    #[serde(default)]
    pub websocket: WebSocketConfig,
    /// Resources that are sent with pages, or prefetched.
    #[serde(default)]
    pub learn: LearnConfig,
    /// Names that are answered here, and the servers for other names.
    #[serde(default)]
    pub dns: DnsConfig,
    /// A file with the secret that capabilities are made with. Without one they are good until the program ends.
    pub secret_file: Option<PathBuf>,
    /// A file with the secret before that one: capabilities that were made with it are still good. Default none.
    pub former_secret_file: Option<PathBuf>,
    /// The operator's listener; `None`: there is none.
    pub admin: Option<AdminConfig>,
    /// Which clients see where the time of an answer went.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Where spans of requests are sent (OpenTelemetry); `None`: there are none.
    pub telemetry: Option<TelemetryConfig>,
}

/// Names that are answered here, and the servers for other names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DnsConfig {
    /// Where questions are answered, over UDP and TCP. Default nowhere.
    pub listen: Vec<SocketAddr>,
    /// The zones. Their names are never origins.
    pub zone: Vec<spdy_dns::zone_config::ZoneConfig>,
    /// Recursive servers for the names of other hosts. Default the system's.
    pub servers: Vec<SocketAddr>,
}

/// Which clients get `Server-Timing`: whether the cache had the response, where the time went, and how far the origin is. Default none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimingConfig {
    /// A file whose first line is a token of 16 characters or more: clients that send it in the field `Spdy-Timing` get the header.
    pub token_file: Option<PathBuf>,
}

/// The operator's listener: purges, reports of pages and metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdminConfig {
    /// Where it listens. Keep it on loopback.
    pub address: SocketAddr,
    /// A file with the token for purges and reports, in one line.
    pub token_file: PathBuf,
    /// Names by which it may be addressed, besides IP addresses and `localhost`: a request for any other host gets 421, so that no
    /// web page can read it by a name of its own (DNS rebinding). Default none.
    #[serde(default)]
    pub names: Vec<String>,
}

impl AdminConfig {
    /// The first of `names` that is no host name.
    pub(crate) fn invalid_host(&self) -> Option<&String> {
        let is_host = |name: &&String| {
            name.parse::<http::uri::Authority>()
                .is_ok_and(|authority| authority.host() == name.as_str())
        };
        self.names.iter().find(|name| !is_host(name))
    }
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no TOML, or not of this form.
    #[error("the configuration cannot be read: {0}")]
    Syntax(String),
    /// An environment variable that sets no key.
    #[error("{name} in the environment: {why}")]
    Environment {
        /// The variable.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// It can be read, and cannot work.
    #[error("{what}: want {want}, got {got}")]
    InvalidValue {
        /// The key.
        what: String,
        /// What is valid.
        want: &'static str,
        /// What is there.
        got: String,
    },
}

impl From<toml::de::Error> for ConfigError {
    fn from(error: toml::de::Error) -> Self {
        let error = shared_cache::redact_error(&error.to_string());
        Self::Syntax(env::describe_error(&error))
    }
}

impl Config {
    /// Reads and checks it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the key.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with_env(text, &BTreeMap::new())
    }

    /// The same, with the environment variables `instead` in place of the text's values; see `config_env`.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the key.
    pub fn parse_with_env(
        text: &str,
        instead: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let config: Self = match instead.is_empty() {
            true => toml::from_str(text)?,
            false => env::parse_with_overrides(text, instead)?,
        };
        config.check()?;
        Ok(config)
    }

    /// A site with all defaults, or with the environment variables `instead`: the meaning of `--origin`. It answers for the origin's own
    /// name.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: no http or https URL of a host, or a variable that is no key.
    pub fn for_origin(
        origin: &Url,
        instead: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let names: Vec<&str> = origin.host_str().into_iter().collect();
        let mut site = toml::Table::new();
        site.insert("names".to_owned(), names.into());
        site.insert("origin".to_owned(), origin.as_str().into());
        let mut table = toml::Table::new();
        table.insert("site".to_owned(), vec![site].into());
        let config = env::apply_overrides(table, instead)?;
        config.check()?;
        Ok(config)
    }

    /// The protocols, best first.
    ///
    /// # Errors
    ///
    /// `ConfigError::AttributeValue`: one that is not spoken here.
    pub fn protocols(&self) -> Result<Vec<Protocol>, ConfigError> {
        let spoken = self.listen.protocols.iter().map(|name| {
            name.parse().map_err(|_| ConfigError::InvalidValue {
                what: "listen.protocols".to_owned(),
                want: "spdy/2, spdy/3, spdy/3.1, h2, h3 or http/1.1",
                got: name.clone(),
            })
        });
        spoken.collect()
    }
}
