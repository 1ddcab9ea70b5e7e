//! The part of the configuration for origins: how they are contacted, how long they may take, and which addresses they may have.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// The longest that an origin may stand still, seconds.
const DAY_S: u64 = 24 * 60 * 60;

/// How origins are contacted.
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
    /// The percentage of requests to one origin that may be sent again, plus ten at once and one per second. Default 20.
    pub retry_percent: u32,
    /// HTTP/1.1 connections to one origin at a time. Default 16. Slow readers hold at most three quarters of them while other requests wait
    /// for one.
    pub connections: usize,
    /// How long an idle connection can be reused if the origin does not state it (`Keep-Alive: timeout`). Default 4: many origins close
    /// theirs after 5, and a request in flight at that moment may be lost.
    pub idle_timeout_s: u64,
    /// Requests with long bodies on their way to one origin at a time: they hold a connection for as long as their clients send.
    /// Default three quarters of `connections`.
    pub uploads: Option<usize>,
    /// How long a request waits while all connections, or all permits of long bodies, are in use. Default 10.
    pub queue_timeout_s: u64,
    /// Requests that may wait in this way for one origin; one more is refused at once. Default 1024.
    pub queue: usize,
    /// Failures in a row after which an origin is not contacted for a while: it cannot be reached, does not answer in time, or takes
    /// nothing of an upload. Default 5; 0: never.
    pub failures: u32,
    /// For how long. Default 5.
    pub rest_s: u64,
    /// Ranges that other hosts may be in although these are not public: for laboratories.
    pub allow_addresses: Vec<String>,
    /// Ranges that they may not be in, even if `allow_addresses` has them.
    pub deny_addresses: Vec<String>,
    /// Prefixes by which the machine's network reaches IPv4 (NAT64, RFC 6052), beside the well-known 64:ff9b::/96. Addresses with such a
    /// prefix are checked as the IPv4 addresses in them.
    pub nat64: Vec<String>,
    /// Names that other hosts may have although these are not public: `backend`, `cache.internal`.
    pub allow_hosts: Vec<String>,
    /// Ports of other hosts beside 80, 443 and those that a host is listed with.
    pub allow_ports: Vec<u16>,
    /// Authorities to trust beside those of the web, PEM.
    pub authorities: Vec<PathBuf>,
    /// Names that are not looked up, of sites' own origins and of other hosts: `name = "address"`. An `address` of a site overrides it for
    /// its origin.
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
    pub fn backoff(&self) -> Duration {
        Duration::from_secs(self.rest_s)
    }

    /// How long a request waits for its turn.
    #[must_use]
    pub fn queue_timeout(&self) -> Duration {
        Duration::from_secs(self.queue_timeout_s)
    }

    /// Long bodies on their way to one origin at a time.
    #[must_use]
    pub fn max_uploads(&self) -> usize {
        let usual = (self.connections * 3 / 4).max(1);
        self.uploads.unwrap_or(usual)
    }

    /// Connections to one origin that slow readers may hold while other requests wait for one.
    pub(crate) fn slow_readers(&self) -> usize {
        self.connections * 3 / 4
    }

    /// A key with an invalid value: the key, what is valid, and the value.
    pub(crate) fn fault(&self) -> Option<(&'static str, &'static str, String)> {
        if self.queue == 0 {
            return Some(("upstream.queue", "at least 1", self.queue.to_string()));
        }
        if self.retry_percent > 100 {
            let got = self.retry_percent.to_string();
            return Some(("upstream.retry_percent", "0 to 100", got));
        }
        if !(1..=DAY_S).contains(&self.write_timeout_s) {
            let got = self.write_timeout_s.to_string();
            return Some(("upstream.write_timeout_s", "1 to 86400", got));
        }
        if !(1..=self.connections).contains(&self.max_uploads()) {
            let want = "at least 1, and no more than upstream.connections";
            return Some(("upstream.uploads", want, self.max_uploads().to_string()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const SITE: &str = "[[site]]\nnames = ['www.site.test']\norigin = 'http://origin.test'\n";

    #[test]
    fn origin_timeouts_accept_one_second_to_one_day() {
        let read = |key: &str| Config::parse(&format!("[upstream]\n{key}\n{SITE}"));
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
}
