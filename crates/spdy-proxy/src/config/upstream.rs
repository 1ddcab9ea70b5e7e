//! The part of the configuration for origins: how they are contacted, how long they may take, and which addresses they may have.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

/// The longest that an origin may stand still, seconds.
const DAY_S: u64 = 24 * 60 * 60;

/// How origins are contacted, how long they may take, and which addresses they may have.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UpstreamConfig {
    /// Time to open a connection. Default 5.
    pub connect_timeout_s: u64,
    /// Time from the last piece of the request body that the origin read to the response head. A client may also pause
    /// this long within a body. Default 30.
    pub head_timeout_s: u64,
    /// Time between two pieces of a body. Default 30.
    pub body_timeout_s: u64,
    /// Time without a message in either direction after which a gRPC call is ended (`site.paths.grpc`), in place of `head_timeout_s` and
    /// `body_timeout_s`; 4 KiB of a long message count too. Range: 1 to 86400. Default 300.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub grpc_idle_timeout_s: u64,
    /// gRPC calls of one client at a time, an IPv4 address or a /56 of IPv6. One more gets `RESOURCE_EXHAUSTED`, and so does a client that
    /// cancels more than ten a second. `0`: no limits, for use behind a balancer that hides its clients. Default 100.
    pub grpc_calls_per_client: usize,
    /// Time in which an origin may read nothing of an upload, or less than 240 bytes a second. Range: 1 to 86400.
    /// Default 60.
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400)))]
    pub write_timeout_s: u64,
    /// Further attempts for a request that may be sent again. Default 1.
    pub retries: u32,
    /// Percentage of the requests to one origin that may be sent again, plus ten at once and one a second. Range: 0 to 100.
    /// Default 20.
    #[cfg_attr(feature = "schema", schemars(range(min = 0, max = 100)))]
    pub retry_percent: u32,
    /// HTTP/1.1 connections to one origin at a time. Slow readers hold at most three quarters of them while other requests
    /// wait for one. Default 16.
    pub connections: usize,
    /// Time after which an idle HTTP/1.1 connection is not used again, if the origin does not state `Keep-Alive: timeout`.
    /// Many origins close theirs after 5 s, and a request that is sent at that moment may be lost. Default 4.
    pub idle_timeout_s: u64,
    /// Requests with long bodies in progress to one origin, at most `connections`. Each holds a connection for as long as its
    /// client sends. Range: at least 1. Default three quarters of `connections`.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub uploads: Option<usize>,
    /// Time that a request waits while all connections, or all places for long bodies, are in use. Default 10.
    pub queue_timeout_s: u64,
    /// Requests that may wait for one origin in this way. Above it, a request is rejected at once. Range: at least 1.
    /// Default 1024.
    #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
    pub queue: usize,
    /// Failures in a row after which an origin is not contacted for `rest_s`. A failure is an origin that cannot be
    /// reached, does not respond in time, or reads nothing of an upload. `0`: an origin is always contacted. Default 5.
    pub failures: u32,
    /// Time for which a failing origin is not contacted. Default 5.
    pub rest_s: u64,
    /// Address ranges that third-party hosts may have although they are not public, for tests.
    pub allow_addresses: Vec<String>,
    /// Address ranges that third-party hosts may not have, even if `allow_addresses` contains them.
    pub deny_addresses: Vec<String>,
    /// NAT64 prefixes of this network (RFC 6052) beside `64:ff9b::/96`. An address with such a prefix is checked as the IPv4
    /// address in it.
    pub nat64: Vec<String>,
    /// Names of third-party hosts that are accepted although they are not public names: `backend`, `cache.internal`.
    pub allow_hosts: Vec<String>,
    /// Ports of third-party hosts in addition to 80, 443 and the port in `hosts`.
    pub allow_ports: Vec<u16>,
    /// PEM files of authorities that are trusted for origins, in addition to the public ones.
    pub authorities: Vec<PathBuf>,
    /// Names with fixed addresses: `{ name = "address" }`. An `address` of a site overrides it for the site's origin.
    pub resolve: BTreeMap<String, IpAddr>,
}

impl Default for UpstreamConfig {
    fn default() -> Self {
        Self {
            connect_timeout_s: 5,
            head_timeout_s: 30,
            body_timeout_s: 30,
            grpc_idle_timeout_s: 300,
            grpc_calls_per_client: 100,
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
    /// The configured address of `host`, if there is one.
    pub(crate) fn address_of(&self, host: &str) -> Option<IpAddr> {
        let mut names = self.resolve.iter();
        let found = names.find(|(name, _)| name.eq_ignore_ascii_case(host));
        found.map(|(_, address)| *address)
    }

    /// How long an origin is left alone.
    #[must_use]
    pub fn backoff(&self) -> Duration {
        Duration::from_secs(self.rest_s)
    }

    /// How long both bodies of a gRPC call may be silent.
    #[must_use]
    pub fn grpc_idle_timeout(&self) -> Duration {
        Duration::from_secs(self.grpc_idle_timeout_s)
    }

    /// gRPC calls of one client at a time, if that is a limit.
    pub(crate) fn calls_per_client(&self) -> Option<usize> {
        Some(self.grpc_calls_per_client).filter(|most| *most > 0)
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
            let found = self.retry_percent.to_string();
            return Some(("upstream.retry_percent", "0 to 100", found));
        }
        for (key, found) in [
            ("upstream.write_timeout_s", self.write_timeout_s),
            ("upstream.grpc_idle_timeout_s", self.grpc_idle_timeout_s),
        ] {
            if !(1..=DAY_S).contains(&found) {
                return Some((key, "1 to 86400", found.to_string()));
            }
        }
        if !(1..=self.connections).contains(&self.max_uploads()) {
            let expected = "at least 1, and no more than upstream.connections";
            return Some(("upstream.uploads", expected, self.max_uploads().to_string()));
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
            let config = read(key).expect("valid configuration");
            assert_eq!(config.upstream.write_timeout_s, seconds, "{key:?}");
        }
        for (key, found) in [
            ("write_timeout_s = 0", "0"),
            ("write_timeout_s = 86401", "86401"),
        ] {
            let error = read(key).expect_err("invalid configuration").to_string();
            let message = format!("upstream.write_timeout_s: expected 1 to 86400, found {found}");
            assert_eq!(error, message);
        }
    }
}
