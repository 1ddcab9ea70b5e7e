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
use toml::de::DeValue;
use url::Url;

use crate::config::access_log::AccessLogConfig;
use crate::config::cache::CacheConfig;
use crate::config::env;
use crate::config::error::ConfigError;
use crate::config::learn::LearnConfig;
use crate::config::limits::ClientLimitsConfig;
use crate::config::listen::{ListenConfig, TlsConfig};
use crate::config::site::SiteConfig;
use crate::config::site_files::SiteFile;
use crate::config::telemetry::TelemetryConfig;
use crate::config::toml_values;
use crate::config::upstream::UpstreamConfig;
use crate::config::websocket::WebSocketConfig;

/// The configuration of the accelerator.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "Configuration of spdy accelerate")
)]
pub struct Config {
    /// Where clients connect.
    #[serde(default)]
    pub listen: ListenConfig,
    /// The accelerator's certificates.
    #[serde(default)]
    pub tls: TlsConfig,
    /// Limits for clients.
    #[serde(default)]
    pub limits: ClientLimitsConfig,
    /// Files with further `[[site]]` tables, and nothing else: paths relative to the folder of this file. `*` in the last part stands
    /// for any characters; such files are read in the order of their names, and there may be none.
    #[serde(default)]
    pub include: Vec<String>,
    /// The sites, at least one.
    #[serde(default)]
    pub site: Vec<SiteConfig>,
    /// The cache: its size, tiers and rules.
    #[serde(default)]
    pub cache: CacheConfig,
    /// How origins are contacted, how long they may take, and which addresses they may have.
    #[serde(default)]
    pub upstream: UpstreamConfig,
    /// WebSockets to the sites' own origins.
    #[serde(default)]
    pub websocket: WebSocketConfig,
    /// Prefetches, pushes and early hints of the resources of pages.
    #[serde(default)]
    pub learn: LearnConfig,
    /// The built-in name server, and the servers that look up other names.
    #[serde(default)]
    pub dns: DnsConfig,
    /// A file with the secret for capabilities and generated names: 32 bytes or more, the same on every machine of the
    /// site. Without it, capabilities are valid until the program ends.
    pub secret_file: Option<PathBuf>,
    /// A file with the previous secret. Capabilities made with it are still accepted. Needs `secret_file`.
    pub former_secret_file: Option<PathBuf>,
    /// The operator's listener: metrics, the dashboard, purges and reports of pages. Optional: without this table, there is no such
    /// listener.
    pub admin: Option<AdminConfig>,
    /// A file with one line for each response. Optional: without this table, there is no such file.
    pub access_log: Option<AccessLogConfig>,
    /// Which clients get `Server-Timing`: whether the cache had the response, where the time went, and how far the origin is.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Spans of requests, sent to a collector by OTLP over HTTP. Optional: without this table, no spans are recorded.
    /// Environment variables (`OTEL_EXPORTER_OTLP_ENDPOINT` and others) set keys that the table does not have.
    pub telemetry: Option<TelemetryConfig>,
}

/// The built-in name server, and the servers that look up other names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DnsConfig {
    /// Addresses of the name server, for UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// A zone. Its names are never used as origins.
    pub zone: Vec<spdy_dns::zone_config::ZoneConfig>,
    /// Recursive servers that look up third-party hosts. Default the system's.
    pub servers: Vec<SocketAddr>,
}

/// Which clients get `Server-Timing`: whether the cache had the response, where the time went, and how far the origin is. Default none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimingConfig {
    /// A file whose first line is a token of 16 characters or more. A request with this token in the field `Spdy-Timing` gets
    /// `Server-Timing`.
    pub token_file: Option<PathBuf>,
}

/// The operator's listener: metrics, the dashboard, purges and reports of pages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdminConfig {
    /// Address of the listener. Keep it on loopback.
    pub address: SocketAddr,
    /// A file with the token for the dashboard, purges and reports, in one line.
    pub token_file: PathBuf,
    /// Accepted host names, beside IP addresses and `localhost`. A request for another host gets 421, so that no web
    /// page can read the listener under its own name (DNS rebinding).
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

impl Config {
    /// Reads and checks it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the key.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        Self::parse_with_env(text, &BTreeMap::new())
    }

    /// The same, with the environment variables `instead` in place of the text's values; see `config_env`. The files of `include` are
    /// not read.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the key.
    pub fn parse_with_env(
        text: &str,
        instead: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        Self::parse_with_includes(text, instead, |_| Ok(Vec::new()))
    }

    /// The same, with the sites in the files that `read` returns for the paths in `include`.
    ///
    /// # Errors
    ///
    /// Those of `read`, and [`ConfigError`], with the key and, for a site of a file, its path.
    pub fn parse_with_includes<E: From<ConfigError>>(
        text: &str,
        instead: &BTreeMap<String, String>,
        read: impl FnOnce(&[String]) -> Result<Vec<SiteFile>, E>,
    ) -> Result<Self, E> {
        let config: Result<Self, ConfigError> = match instead.is_empty() {
            true => toml::from_str(text).map_err(ConfigError::from),
            false => env::parse_with_overrides(text, instead),
        };
        let mut config = config?;
        for file in read(&config.include)? {
            config.site.extend(file.sites()?);
        }
        config.check()?;
        Ok(config)
    }

    /// A site that proxies what is safe of the hosts that its pages name (`discover`), with the environment variables `instead`: the
    /// meaning of `--origin`. It answers for the origin's own name.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: no http or https URL of a host, or a variable that is no key.
    pub fn for_origin(
        origin: &Url,
        instead: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let names: Vec<&str> = origin.host_str().into_iter().collect();
        let rewrite = toml_values::table([("discover", DeValue::Boolean(true))]);
        let site = toml_values::table([
            (
                "names",
                toml_values::array(names.into_iter().map(toml_values::text)),
            ),
            ("origin", toml_values::text(origin.as_str())),
            ("rewrite", DeValue::Table(rewrite)),
        ]);
        let table = toml_values::table([("site", toml_values::array([DeValue::Table(site)]))]);
        let config: Self = env::apply_overrides(toml_values::unspanned(table), instead)?;
        config.check()?;
        Ok(config)
    }

    /// Whether a folder of files takes the place of an origin somewhere.
    #[must_use]
    pub fn has_folders(&self) -> bool {
        let mut paths = self.site.iter().flat_map(|site| &site.paths);
        paths.any(|path| path.folder.is_some())
    }

    /// The protocols, best first.
    ///
    /// # Errors
    ///
    /// [`ConfigError::InvalidValue`]: a protocol that this program does not speak.
    pub fn protocols(&self) -> Result<Vec<Protocol>, ConfigError> {
        let spoken = self.listen.protocols.iter().map(|name| {
            name.parse().map_err(|_| ConfigError::InvalidValue {
                key: "listen.protocols".to_owned(),
                expected: "spdy/2, spdy/3, spdy/3.1, h2, h3 or http/1.1",
                found: name.clone(),
            })
        });
        spoken.collect()
    }
}
