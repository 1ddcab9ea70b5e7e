//! The part of the configuration that is about where an origin is: its URL, its servers and their weights, and how their health is checked.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Deserialize;
use url::Url;

use crate::config::error::InvalidValue;

/// The prefix of a Unix socket's path.
const UNIX: &str = "unix:";

/// A server of the site's origin. Each request goes to the available server with the fewest requests in progress for its weight.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServerConfig {
    /// Its address and port, such as `10.0.0.1:8080`, `[2001:db8::1]:8080` or `app-1.internal:8080`, or the path of a Unix socket,
    /// such as `unix:/run/app.sock`.
    pub address: String,
    /// Its share of the requests beside other servers. Range: 1 to 1000. Default 1.
    #[serde(default = "one")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
    pub weight: u32,
}

/// How the health of a site's servers is checked. A server gets no requests after two failed checks in a row, or if its first check
/// fails; it gets requests again after two successful ones.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HealthConfig {
    /// Path of the request. A response with a status of 200 to 399 is a success.
    pub path: String,
    /// Time between two checks of a server. Range: 1 to 3600. Default 5.
    #[serde(default = "five")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600)))]
    pub interval_s: u64,
    /// Time until a check without a response fails. Range: 1 to 60. Default 2.
    #[serde(default = "two")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 60)))]
    pub timeout_s: u64,
    /// Time in which the share of a server that is available again grows to its full weight. Range: 0 to 3600. Default 10.
    #[serde(default = "ten")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 3600)))]
    pub slow_start_s: u64,
}

fn one() -> u32 {
    1
}

fn two() -> u64 {
    2
}

fn five() -> u64 {
    5
}

fn ten() -> u64 {
    10
}

/// Where a server is.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ServerAddress {
    /// A host, or an address, and a port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for ServerAddress {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        if let Some(path) = text.strip_prefix(UNIX) {
            let is_absolute = path.starts_with('/') && cfg!(unix);
            return is_absolute.then(|| Self::Unix(path.into())).ok_or(());
        }
        let (host, port) = text.rsplit_once(':').ok_or(())?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let host = url::Host::parse(host).or_else(|_| url::Host::parse(&format!("[{host}]")));
        let host = match host.map_err(drop)? {
            url::Host::Domain(name) => name,
            url::Host::Ipv4(address) => address.to_string(),
            url::Host::Ipv6(address) => address.to_string(),
        };
        let port = port.parse().map_err(drop)?;
        (port != 0).then_some(Self::Tcp(host, port)).ok_or(())
    }
}

impl fmt::Display for ServerAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// Whether nothing but scheme, host and perhaps a port is in it.
pub(crate) fn is_origin_url(origin: &Url) -> bool {
    let is_root = matches!(origin.path(), "" | "/") && origin.query().is_none();
    let is_web = matches!(origin.scheme(), "http" | "https") && origin.has_host();
    let has_no_user = origin.username().is_empty() && origin.password().is_none();
    is_web && is_root && has_no_user && origin.fragment().is_none()
}

/// `origin` without its user name and password, for logs and errors.
pub(crate) fn redact_origin(origin: &Url) -> Url {
    let mut redacted = origin.clone();
    // An error is a URL that can have neither.
    let _ = redacted.set_username("");
    let _ = redacted.set_password(None);
    redacted
}

/// A fault in `servers` and their checks, where `address` is that of the origin: the key, what is valid, and the value.
pub(crate) fn fault(
    servers: &[ServerConfig],
    health: Option<&HealthConfig>,
    address: Option<IpAddr>,
) -> Option<InvalidValue> {
    let mut used = BTreeSet::new();
    for server in servers {
        if !used.insert(&server.address) {
            let expected = "each address once in a site; `weight` increases its share";
            return Some((
                "site.servers.address",
                expected,
                format!("{:?}", server.address),
            ));
        }
        if server.address.parse::<ServerAddress>().is_err() {
            let expected =
                "an address and a port, such as 10.0.0.1:8080, or unix: and an absolute path";
            return Some((
                "site.servers.address",
                expected,
                format!("{:?}", server.address),
            ));
        }
        if !(1..=1000).contains(&server.weight) {
            return Some((
                "site.servers.weight",
                "1 to 1000",
                server.weight.to_string(),
            ));
        }
    }
    if let (Some(address), false) = (address, servers.is_empty()) {
        let expected = "no address beside servers";
        return Some(("site.address", expected, address.to_string()));
    }
    let health = health?;
    if servers.is_empty() {
        let expected = "servers to check";
        return Some(("site.health", expected, format!("{:?}", health.path)));
    }
    if !health.path.starts_with('/') || health.path.parse::<http::uri::PathAndQuery>().is_err() {
        let expected = "a path that begins with /";
        return Some(("site.health.path", expected, format!("{:?}", health.path)));
    }
    let ranges = [
        (
            "site.health.interval_s",
            "1 to 3600",
            health.interval_s,
            1..=3600,
        ),
        ("site.health.timeout_s", "1 to 60", health.timeout_s, 1..=60),
        (
            "site.health.slow_start_s",
            "0 to 3600",
            health.slow_start_s,
            0..=3600,
        ),
    ];
    let mut wrong = ranges.into_iter();
    let (key, expected, found, _) = wrong.find(|(.., found, range)| !range.contains(found))?;
    Some((key, expected, found.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_servers_are_hosts_with_ports_or_unix_sockets() {
        let tcp = |host: &str, port| Ok(ServerAddress::Tcp(host.to_owned(), port));
        for (text, parsed) in [
            ("10.0.0.1:8080", tcp("10.0.0.1", 8080)),
            ("[2001:db8::1]:80", tcp("2001:db8::1", 80)),
            ("app-1.internal:8080", tcp("app-1.internal", 8080)),
            (
                "unix:/run/app.sock",
                Ok(ServerAddress::Unix("/run/app.sock".into())),
            ),
            ("10.0.0.1", Err(())),
            ("10.0.0.1:0", Err(())),
            ("a b:80", Err(())),
            ("http://a:80", Err(())),
            ("unix:app.sock", Err(())),
        ] {
            assert_eq!(text.parse(), parsed, "{text}");
            if let Ok(address) = parsed {
                assert_eq!(address.to_string(), text);
            }
        }
    }
}
