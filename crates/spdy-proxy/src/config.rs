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

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use spdy_net::protocol::Protocol;
use url::Url;

use crate::config_acme::AcmeConfig;
use crate::config_env;
use crate::config_lab::LabConfig;
use crate::config_limits::ClientLimitsConfig;
use crate::config_shared::{self, SharedConfig};
use crate::config_telemetry::TelemetryConfig;
use crate::config_websocket::WebSocketConfig;

/// The longest that an origin may stand still, seconds.
const DAY_S: u64 = 24 * 60 * 60;
/// The most things that may be fetched ahead at a time.
const MAX_PREFETCHES: usize = 1 << 16;

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
    pub listen: Listen,
    /// How the accelerator shows who it is.
    #[serde(default)]
    pub tls: Tls,
    /// What clients may want.
    #[serde(default)]
    pub limits: ClientLimitsConfig,
    /// What is accelerated; at least one.
    #[serde(default)]
    pub site: Vec<SiteConfig>,
    /// What is kept.
    #[serde(default)]
    pub cache: CacheConfig,
    /// How origins are asked.
    #[serde(default)]
    pub upstream: UpstreamConfig,
    /// How many WebSockets to the sites' own origins may be open.
    #[serde(default)]
    pub websocket: WebSocketConfig,
    /// What goes along with pages.
    #[serde(default)]
    pub learn: LearnConfig,
    /// Names that are answered for, and who is asked for others'.
    #[serde(default)]
    pub dns: DnsConfig,
    /// A file with the secret that capabilities are made with. Without one they are good until the program ends.
    pub secret_file: Option<PathBuf>,
    /// A file with the secret before that one: capabilities that were made with it are still good. Default none.
    pub former_secret_file: Option<PathBuf>,
    /// The operator's door; `None`: there is none.
    pub admin: Option<AdminConfig>,
    /// Who is told where the time of an answer went.
    #[serde(default)]
    pub timing: TimingConfig,
    /// Where spans of requests are sent (OpenTelemetry); `None`: there are none.
    pub telemetry: Option<TelemetryConfig>,
    /// What only laboratories want.
    #[serde(default)]
    pub lab: LabConfig,
}

/// Where clients are let in.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Listen {
    /// TLS, and QUIC beside it if `h3` is among the protocols. Default 127.0.0.1:8443.
    pub tls: Vec<SocketAddr>,
    /// Plain connections. Default none.
    pub plain: Vec<SocketAddr>,
    /// Spoken, best first. Default SPDY/3.1, h3, h2 and HTTP/1.1.
    pub protocols: Vec<String>,
    /// The port that clients reach the sites at, where it is not the one that is listened at: behind a redirection of ports.
    pub public_port: Option<u16>,
    /// Addresses that lead here and that no interface of the machine has: behind a balancer, or a translation of addresses. No
    /// origin is connected to there. Default none; what interfaces have is known.
    pub public_addresses: Vec<IpAddr>,
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            tls: vec![SocketAddr::from(([127, 0, 0, 1], 8443))],
            plain: Vec::new(),
            protocols: ["spdy/3.1", "h3", "h2", "http/1.1"]
                .map(str::to_owned)
                .to_vec(),
            public_port: None,
            public_addresses: Vec::new(),
        }
    }
}

/// How the accelerator shows who it is.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tls {
    /// Certificate chain, PEM, leaf first. Without one, an authority made on the spot signs for all names.
    pub certificate: Option<PathBuf>,
    /// Its private key, PEM.
    pub key: Option<PathBuf>,
    /// More of them: each is shown to whoever asks for a name in it. Who asks for a name of none is shown the one above, else the first of
    /// these.
    pub certificates: Vec<CertificateFiles>,
    /// Where the authority made on the spot is written, for clients to believe it.
    pub write_authority: Option<PathBuf>,
    /// Certificates from an authority of the web. Until the first has come, one made on the spot is shown.
    pub acme: Option<AcmeConfig>,
}

/// A certificate and its key, in files.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CertificateFiles {
    /// Certificate chain, PEM, leaf first.
    pub certificate: PathBuf,
    /// Its private key, PEM.
    pub key: PathBuf,
}

impl Tls {
    /// The certificates out of files, with their keys, the first first.
    pub fn files(&self) -> impl Iterator<Item = (&Path, &Path)> {
        let first = self.certificate.as_deref().zip(self.key.as_deref());
        let more = self.certificates.iter();
        let more = more.map(|files| (files.certificate.as_path(), files.key.as_path()));
        first.into_iter().chain(more)
    }
}

/// One site.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SiteConfig {
    /// The names it is asked for by; the first is the one that capabilities are bound to.
    pub names: Vec<String>,
    /// Where its own pages come from: scheme, host and perhaps a port.
    pub origin: Url,
    /// The address of `origin`, where its name does not lead there: as when the name is this accelerator's.
    pub address: Option<IpAddr>,
    /// The origin is asked for the name that the client asked for, not for its own: it stands where its own name leads, all the
    /// same, and shows a certificate for the name that it is asked for.
    #[serde(default)]
    pub keep_host: bool,
    /// WebSockets go to its origin. Default yes: they are of the site's own, and asked for by its own pages, as they are without an
    /// accelerator.
    #[serde(default = "yes")]
    pub websocket: bool,
    /// An answer that is one client's alone, and that the origin sent without a content coding, goes out under one to whoever takes it.
    /// Default no: by the length of what holds a secret beside what somebody else wrote the secret can be found out (BREACH). An
    /// origin that knows better codes such answers itself; this is for one whose answers hold no secrets, or none that stay the same.
    #[serde(default)]
    pub compress_private: bool,
    /// What may be kept of the site in memory, of `cache.memory_mib`, MiB. Default all of it.
    pub cache_mib: Option<usize>,
    /// And on the disk, of `cache.disk_mib`, MiB. Default all of it.
    pub disk_mib: Option<usize>,
    /// What is moved under the site's name.
    #[serde(default)]
    pub rewrite: spdy_rewrite::config::Config,
}

fn yes() -> bool {
    true
}

/// What is kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CacheConfig {
    /// Memory for all of it, MiB. Default 256.
    pub memory_mib: usize,
    /// The largest body kept, MiB. Default 32.
    pub object_mib: usize,
    /// Memory for what is on its way to be kept, 64 KiB of each apart, MiB. What finds no room there is not kept, and read from its origin
    /// at the pace of who wants it. Default as much as `memory_mib`.
    pub in_flight_mib: Option<usize>,
    /// A folder of its own where what is kept outlives a restart; `None`: memory alone. Wants a `secret_file`: under
    /// another secret nothing is found again.
    pub disk: Option<PathBuf>,
    /// Room for all files there, MiB. Default 4096.
    pub disk_mib: usize,
    /// A cluster of Valkey or Redis through which several machines share what they keep; `None`: each for itself. Wants a
    /// `secret_file`, the same on all of them.
    pub shared: Option<SharedConfig>,
    /// Answers to requests with cookies are kept although they do not say that everyone may have them (`public`, `s-maxage`).
    /// Default no: origins forget to say that an answer is for one visitor.
    pub after_cookies: bool,
    /// How long a body that is to be kept may take to come. Past it, it is not kept: who reads it gets the rest at the origin's
    /// pace, and where nobody does it is given up. Default 600.
    pub fetch_timeout_s: u64,
    /// How long requests for one thing wait for the head of the answer to the first of them before one more is sent to the origin, and then
    /// another each time it has passed; whichever comes first is for all. Who has waited for `upstream.head_timeout_s` is told that the
    /// origin does not answer. Default 10.
    pub lock_age_s: u64,
    /// Requests a second of one client (an IPv4 address, a /56 of IPv6) that what is kept does not answer, so that an origin is
    /// asked; five seconds' worth at once. Default 500; 0: no limit, as behind a balancer that hides its clients.
    pub misses_per_second: u32,
    /// Clients may have what is fresh fetched again, by `Cache-Control: no-cache`. Default no: a reload would then reach the
    /// origin.
    pub obey_reload: bool,
}

impl Default for CacheConfig {
    fn default() -> Self {
        Self {
            memory_mib: 256,
            object_mib: 32,
            in_flight_mib: None,
            disk: None,
            disk_mib: 4096,
            shared: None,
            after_cookies: false,
            fetch_timeout_s: 600,
            lock_age_s: 10,
            misses_per_second: 500,
            obey_reload: false,
        }
    }
}

impl CacheConfig {
    /// Memory for what is on its way to be kept, MiB.
    #[must_use]
    pub fn in_flight_mib(&self) -> usize {
        self.in_flight_mib.unwrap_or(self.memory_mib)
    }
}

/// How origins are asked.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpstreamConfig {
    /// From wanting a connection to having it. Default 5.
    pub connect_timeout_s: u64,
    /// From the request, with the last piece of its body that the origin took, to the head of the answer. Default 30. A client may be
    /// silent for as long in the middle of a body.
    pub head_timeout_s: u64,
    /// Between two pieces of a body. Default 30.
    pub body_timeout_s: u64,
    /// How long an origin may take nothing of a request's body that is there for it, or less than 240 bytes a second. Default 60.
    pub write_timeout_s: u64,
    /// How often a request that may be is sent again. Default 1.
    pub retries: u32,
    /// Of a hundred requests to one origin so many may be sent again, ten more at once and one a second. Default 20.
    pub retry_percent: u32,
    /// HTTP/1.1 connections to one origin at a time. Default 16.
    pub connections: usize,
    /// How long one of them may be idle and be used again, where the origin does not say (`Keep-Alive: timeout`). Default 4: many
    /// origins close theirs after 5, and a request that meets that on its way may be lost.
    pub idle_timeout_s: u64,
    /// Requests with long bodies on their way to one origin at a time: they hold a connection for as long as their clients send.
    /// Default three quarters of `connections`.
    pub uploads: Option<usize>,
    /// How long a request waits while all connections, or all places of long bodies, are taken. Default 10.
    pub queue_timeout_s: u64,
    /// Requests that may wait so for one origin; one more is told at once to come back. Default 1024.
    pub queue: usize,
    /// Failures in a row after which an origin is left alone: it cannot be reached, does not answer in time, or takes nothing
    /// of an upload. Default 5; 0: never.
    pub failures: u32,
    /// For how long. Default 5.
    pub rest_s: u64,
    /// Ranges that hosts of others may stand in although nobody's are public there: laboratories.
    pub allow_addresses: Vec<String>,
    /// Ranges that they may not stand in besides, even if that allows them.
    pub deny_addresses: Vec<String>,
    /// Prefixes by which the machine's network reaches IPv4 (NAT64, RFC 6052), beside the well-known 64:ff9b::/96: what is behind them
    /// is judged as the IPv4 address that it is.
    pub nat64: Vec<String>,
    /// Names that hosts of others may have although no public host is called so: `backend`, `cache.internal`.
    pub allow_hosts: Vec<String>,
    /// Ports of hosts of others beside 80, 443 and those that a host is listed with.
    pub allow_ports: Vec<u16>,
    /// Authorities to believe beside those of the web, PEM.
    pub authorities: Vec<PathBuf>,
    /// Names that are not looked up: `name = "address"`.
    pub resolve: BTreeMap<String, IpAddr>,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            connect_timeout_s: 5,
            head_timeout_s: 30,
            body_timeout_s: 30,
            write_timeout_s: 60,
            retries: 1,
            retry_percent: 20,
            connections: 16,
            idle_timeout_s: 4,
            uploads: None,
            queue_timeout_s: 10,
            queue: 1024,
            failures: 5,
            rest_s: 5,
            allow_addresses: Vec::new(),
            deny_addresses: Vec::new(),
            nat64: Vec::new(),
            allow_hosts: Vec::new(),
            allow_ports: Vec::new(),
            authorities: Vec::new(),
            resolve: BTreeMap::new(),
        }
    }
}

impl UpstreamConfig {
    /// How long an origin is left alone.
    #[must_use]
    pub fn rest(&self) -> Duration {
        Duration::from_secs(self.rest_s)
    }

    /// How long a request waits for its turn.
    #[must_use]
    pub fn queue_timeout(&self) -> Duration {
        Duration::from_secs(self.queue_timeout_s)
    }

    /// Long bodies on their way to one origin at a time.
    #[must_use]
    pub fn uploads(&self) -> usize {
        let usual = (self.connections * 3 / 4).max(1);
        self.uploads.unwrap_or(usual)
    }
}

/// What goes along with pages.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LearnConfig {
    /// What clients ask for after a page is pushed over SPDY. Default yes.
    pub push: bool,
    /// And told by 103 over HTTP/2 and HTTP/3. Default yes.
    pub early_hints: bool,
    /// What a page names is fetched as soon as it is read. Default yes.
    pub prefetch: bool,
    /// Things that are fetched so for one that a client asked for, with all that they lead to: those that are named first, and of which a
    /// browser has no choice, as it has among the candidates of a `srcset`. What is here already does not count. Default 128.
    pub prefetch_per_page: usize,
    /// Things that are fetched so at a time, for all clients. Default 256.
    pub prefetches: usize,
}

impl Default for LearnConfig {
    fn default() -> Self {
        Self {
            push: true,
            early_hints: true,
            prefetch: true,
            prefetch_per_page: 128,
            prefetches: 256,
        }
    }
}

/// Names that are answered for, and who is asked for others'.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DnsConfig {
    /// Where questions are answered, over UDP and TCP. Default nowhere.
    pub listen: Vec<SocketAddr>,
    /// The zones. Their names are never origins.
    pub zone: Vec<spdy_dns::zone_config::ZoneConfig>,
    /// Recursive servers that know where hosts of others are. Default the system's.
    pub servers: Vec<SocketAddr>,
}

/// Who is told by `Server-Timing` what became of a request and where its time went: whether somebody had it before, and how far the
/// origin is. Default nobody.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimingConfig {
    /// A file whose first line is a token, of 16 characters or more: who shows it in the field `Spdy-Timing` is told.
    pub token_file: Option<PathBuf>,
    /// Everyone is told: for laboratories.
    pub everyone: bool,
}

/// The operator's door: purges, reports of pages and metrics.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AdminConfig {
    /// Where it listens. Keep it on loopback.
    pub address: SocketAddr,
    /// A file with the token that purges and reports want, in one line.
    pub token_file: PathBuf,
}

/// What is wrong with a configuration.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It is no TOML, or not of this form.
    #[error("the configuration cannot be read: {0}")]
    Form(String),
    /// A variable of the environment has no place in it.
    #[error("{name} in the environment: {why}")]
    Environment {
        /// The variable.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// It can be read, and cannot work.
    #[error("{what}: want {want}, got {got}")]
    Value {
        /// The key.
        what: String,
        /// What would do.
        want: &'static str,
        /// What is there.
        got: String,
    },
}

impl From<toml::de::Error> for ConfigError {
    fn from(error: toml::de::Error) -> Self {
        Self::Form(config_shared::without_passwords(&error.to_string()))
    }
}

impl Config {
    /// Reads and checks it.
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the key.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        Self::read_with(text, &BTreeMap::new())
    }

    /// The same, with what the variables of the environment `instead` say in place of the text; see [`config_env`].
    ///
    /// # Errors
    ///
    /// [`ConfigError`], with the key.
    pub fn read_with(text: &str, instead: &BTreeMap<String, String>) -> Result<Self, ConfigError> {
        let config: Self = match instead.is_empty() {
            true => toml::from_str(text)?,
            false => config_env::replaced(text, instead)?,
        };
        config.check()?;
        Ok(config)
    }

    /// A site with everything at its default, or as the variables of the environment `instead` say: what `--origin` means. It answers
    /// for the origin's own name.
    ///
    /// # Errors
    ///
    /// [`ConfigError`]: no http or https URL of a host, or a variable that is no key.
    pub fn of_origin(
        origin: &Url,
        instead: &BTreeMap<String, String>,
    ) -> Result<Self, ConfigError> {
        let names: Vec<&str> = origin.host_str().into_iter().collect();
        let mut site = toml::Table::new();
        site.insert("names".to_owned(), names.into());
        site.insert("origin".to_owned(), origin.as_str().into());
        let mut table = toml::Table::new();
        table.insert("site".to_owned(), vec![site].into());
        let config = config_env::replaced_in(table, instead)?;
        config.check()?;
        Ok(config)
    }

    /// The protocols, best first.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Value`]: one that is not spoken here.
    pub fn protocols(&self) -> Result<Vec<Protocol>, ConfigError> {
        let spoken = self.listen.protocols.iter().map(|name| {
            name.parse().map_err(|_| ConfigError::Value {
                what: "listen.protocols".to_owned(),
                want: "spdy/2, spdy/3, spdy/3.1, h2, h3 or http/1.1",
                got: name.clone(),
            })
        });
        spoken.collect()
    }

    /// Whether all that it has switched on may be near who listens at `listening`.
    ///
    /// # Errors
    ///
    /// [`ConfigError::Value`]: the first address that is not allowed.
    pub fn check_listeners(
        &self,
        listening: impl IntoIterator<Item = SocketAddr>,
    ) -> Result<(), ConfigError> {
        match self.lab.fault(listening) {
            None => Ok(()),
            Some((what, want, got)) => {
                let (what, got) = (what.to_owned(), got.to_string());
                Err(ConfigError::Value { what, want, got })
            }
        }
    }

    /// Where it is to be listened.
    pub fn listening(&self) -> impl Iterator<Item = SocketAddr> {
        let clients = self.listen.tls.iter().chain(&self.listen.plain);
        let operator = self.admin.iter().map(|admin| &admin.address);
        clients.chain(operator).chain(&self.dns.listen).copied()
    }

    fn check(&self) -> Result<(), ConfigError> {
        let value = |what: &str, want, got: &dyn std::fmt::Debug| {
            let (what, got) = (what.to_owned(), format!("{got:?}"));
            Err(ConfigError::Value { what, want, got })
        };
        self.protocols()?;
        if self.listen.tls.is_empty() && self.listen.plain.is_empty() {
            return value("listen", "an address under tls or plain", &self.listen.tls);
        }
        if !self.dns.listen.is_empty() && self.dns.zone.is_empty() {
            return value("dns.zone", "at least one to answer for", &self.dns.zone);
        }
        if self.tls.certificate.is_some() != self.tls.key.is_some() {
            return value("tls", "both certificate and key, or neither", &self.tls);
        }
        if self.site.is_empty() {
            return value("site", "at least one", &self.site.len());
        }
        if self.cache.object_mib > self.cache.memory_mib {
            let (what, got) = ("cache.object_mib", self.cache.object_mib);
            return value(what, "no more than cache.memory_mib", &got);
        }
        if self.cache.object_mib > self.cache.in_flight_mib() {
            let (what, got) = ("cache.in_flight_mib", self.cache.in_flight_mib());
            return value(what, "no less than cache.object_mib", &got);
        }
        if self.cache.disk.is_some() && self.cache.object_mib > self.cache.disk_mib {
            let (what, got) = ("cache.object_mib", self.cache.object_mib);
            return value(what, "no more than cache.disk_mib", &got);
        }
        if !(1..=DAY_S).contains(&self.cache.lock_age_s) {
            let got = &self.cache.lock_age_s;
            return value("cache.lock_age_s", "1 to 86400", got);
        }
        if self.cache.disk.is_some() && self.secret_file.is_none() {
            // Rules are told apart by the secret as well: under another, nothing of before is found.
            let want = "a secret_file beside it, so that what is kept is found again";
            return value("cache.disk", want, &self.cache.disk);
        }
        let zones = self.site.iter().map(|site| &site.rewrite.names_under);
        if let Some(zone) = zones
            .flatten()
            .next()
            .filter(|_| self.secret_file.is_none())
        {
            // Names are made with it, and stand in certificates and in DNS.
            let want = "a secret_file beside it, so that names stay what they are";
            return value("site.rewrite.names_under", want, zone);
        }
        if self.learn.prefetch_per_page == 0 {
            let got = &self.learn.prefetch_per_page;
            return value("learn.prefetch_per_page", "at least 1", got);
        }
        if !(1..=MAX_PREFETCHES).contains(&self.learn.prefetches) {
            let got = &self.learn.prefetches;
            return value("learn.prefetches", "1 to 65536", got);
        }
        let elsewhere = self.listen.public_addresses.first();
        if self.lab.paper_urls && elsewhere.is_some() {
            let want = "no listen.public_addresses, for its URLs are those of a laboratory";
            return value("lab.paper_urls", want, &elsewhere);
        }
        if self.former_secret_file.is_some() && self.secret_file.is_none() {
            let want = "a secret_file beside it, which took its place";
            return value("former_secret_file", want, &self.former_secret_file);
        }
        let upstream = &self.upstream;
        if upstream.queue == 0 {
            return value("upstream.queue", "at least 1", &upstream.queue);
        }
        if upstream.retry_percent > 100 {
            let got = &upstream.retry_percent;
            return value("upstream.retry_percent", "0 to 100", got);
        }
        if !(1..=DAY_S).contains(&upstream.write_timeout_s) {
            let (what, got) = ("upstream.write_timeout_s", upstream.write_timeout_s);
            return value(what, "1 to 86400", &got);
        }
        if !(1..=upstream.connections).contains(&upstream.uploads()) {
            let want = "at least 1, and no more than upstream.connections";
            return value("upstream.uploads", want, &upstream.uploads());
        }
        if let Some((what, want)) = self.limits.fault() {
            return value(what, want, &0);
        }
        if let Some((what, want, got)) = self.websocket.fault() {
            return value(what, want, &got);
        }
        if let Some(shared) = &self.cache.shared {
            if let Some((what, want, got)) = shared.fault() {
                return value(what, want, &got);
            }
            if self.secret_file.is_none() {
                let want = "a secret_file beside it, the same on all machines";
                return value("cache.shared", want, &shared.prefix);
            }
        }
        let mut names = BTreeSet::new();
        for site in &self.site {
            if site.names.is_empty() {
                return value("site.names", "at least one", &site.names.len());
            }
            for name in &site.names {
                let is_name = url::Host::parse(name).is_ok_and(|host| host.to_string() == *name);
                if !is_name {
                    return value("site.names", "a host name in lower case", name);
                }
                if !names.insert(name) {
                    return value("site.names", "a name of one site", name);
                }
            }
            let origin = &site.origin;
            let is_bare = matches!(origin.path(), "" | "/") && origin.query().is_none();
            let is_bare = is_bare && origin.username().is_empty() && origin.fragment().is_none();
            if !matches!(origin.scheme(), "http" | "https") || !origin.has_host() || !is_bare {
                let want = "an http or https URL of a host, without a path";
                return value("site.origin", want, &origin.as_str());
            }
            let cache = &self.cache;
            if let Some(got) = site.cache_mib
                && !(1..=cache.memory_mib).contains(&got)
            {
                let want = "1 to cache.memory_mib";
                return value("site.cache_mib", want, &got);
            }
            if let Some(got) = site.disk_mib
                && (cache.disk.is_none() || !(1..=cache.disk_mib).contains(&got))
            {
                let want = "1 to cache.disk_mib, and cache.disk";
                return value("site.disk_mib", want, &got);
            }
            let most = upstream.head_timeout_s;
            let heads = site.rewrite.all_limits().filter_map(|it| it.head_timeout_s);
            if let Some(got) = heads.max().filter(|got| *got > most) {
                let want = "no more than upstream.head_timeout_s";
                return value("site.rewrite limits.head_timeout_s", want, &got);
            }
        }
        if let Some((what, want, got)) = self.telemetry.as_ref().and_then(TelemetryConfig::fault) {
            let what = what.to_owned();
            return Err(ConfigError::Value { what, want, got });
        }
        let acme = self.tls.acme.as_ref();
        if let Some((what, want, got)) = acme.and_then(|acme| acme.fault(self)) {
            let what = what.to_owned();
            return Err(ConfigError::Value { what, want, got });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: &str = "[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n";

    #[test]
    fn an_origin_may_stand_still_for_a_second_to_a_day() {
        let read = |key: &str| Config::read(&format!("[upstream]\n{key}\n{SITE}"));
        for (key, seconds) in [
            ("", 60),
            ("write_timeout_s = 1", 1),
            ("write_timeout_s = 86400", 86_400),
        ] {
            let config = read(key).expect("it can work");
            assert_eq!(config.upstream.write_timeout_s, seconds, "{key:?}");
        }
        for (key, got) in [
            ("write_timeout_s = 0", "0"),
            ("write_timeout_s = 86401", "86401"),
        ] {
            let error = read(key).expect_err("it cannot work").to_string();
            let said = format!("upstream.write_timeout_s: want 1 to 86400, got {got}");
            assert_eq!(error, said);
        }
    }

    #[test]
    fn one_more_is_sent_to_a_slow_origin_after_a_second_to_a_day() {
        let read = |key: &str| Config::read(&format!("[cache]\n{key}\n{SITE}"));
        for (key, seconds) in [("", 10), ("lock_age_s = 86400", 86_400)] {
            let config = read(key).expect("it can work");
            assert_eq!(config.cache.lock_age_s, seconds, "{key:?}");
        }
        for got in ["0", "86401"] {
            let error = read(&format!("lock_age_s = {got}")).expect_err("it cannot work");
            let said = format!("cache.lock_age_s: want 1 to 86400, got {got}");
            assert_eq!(error.to_string(), said);
        }
    }
}
