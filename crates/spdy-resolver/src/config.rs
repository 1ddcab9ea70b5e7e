//! The configuration of a resolver: upstream servers, timeouts, cache limits.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// The port of name servers.
pub const PORT: u16 = 53;

/// How a [`Resolver`](crate::resolver::Resolver) resolves.
#[derive(Clone, Debug)]
pub struct ResolverConfig {
    /// Recursive servers, in the order to query them. Empty: the network's own resolver is queried, which gives no TTL.
    pub servers: Vec<SocketAddr>,
    /// Addresses of hosts (in lower case) that are not looked up, such as an origin whose name is in our own zones.
    pub explicit: BTreeMap<String, Vec<IpAddr>>,
    /// How long one server has for one answer over UDP, and again over TCP. Default 2 s.
    pub timeout: Duration,
    /// How often all servers are tried. Default 2.
    pub rounds: u32,
    /// Aliases that are followed. Default 8.
    pub aliases: usize,
    /// The least time for which an answer is cached, whatever its TTL. Default 1 s: names with TTL 0 would
    /// be queried at every request.
    pub min_ttl: Duration,
    /// The longest time for which an answer is cached. Default one hour.
    pub max_ttl: Duration,
    /// How long the answer of a resolver without TTLs is cached. Default 30 s.
    pub default_ttl: Duration,
    /// The longest time for which a negative answer (no such name, or no address) is cached (RFC 2308 §5). Default 10 s.
    pub max_negative_ttl: Duration,
    /// Maximum number of cached hosts; above it, the one that expires first is evicted. Default 4096.
    pub hosts: usize,
    /// Replies over UDP that one look-up may receive without a match to its question (another ID, name or case; those from another
    /// source do not count). Above this number it uses only TCP. Default 16.
    pub max_mismatched_replies: u32,
    /// Maximum number of concurrent look-ups; one more fails. Each uses up to two sockets. Default 256.
    pub max_lookups: usize,
}

impl Default for ResolverConfig {
    fn default() -> Self {
        Self {
            servers: Vec::new(),
            explicit: BTreeMap::new(),
            timeout: Duration::from_secs(2),
            rounds: 2,
            aliases: 8,
            min_ttl: Duration::from_secs(1),
            max_ttl: Duration::from_secs(3600),
            default_ttl: Duration::from_secs(30),
            max_negative_ttl: Duration::from_secs(10),
            hosts: 4096,
            max_mismatched_replies: 16,
            max_lookups: 256,
        }
    }
}

/// The servers in the text of a `resolv.conf`, at port 53. Invalid lines are ignored, as in other resolvers. A link-local address with
/// a zone is ignored too, because an [`IpAddr`] cannot store the zone.
#[must_use]
pub fn servers_of(resolv_conf: &str) -> Vec<SocketAddr> {
    let lines = resolv_conf.lines().map(str::split_whitespace);
    let addresses = lines.filter_map(|mut words| match (words.next(), words.next()) {
        (Some("nameserver"), Some(address)) => address.parse::<IpAddr>().ok(),
        _ => None,
    });
    addresses
        .map(|address| SocketAddr::new(address, PORT))
        .collect()
}

/// The system's servers, of `/etc/resolv.conf`.
///
/// # Errors
///
/// There is no such file, or it cannot be read.
pub fn system_servers() -> io::Result<Vec<SocketAddr>> {
    std::fs::read_to_string("/etc/resolv.conf").map(|text| servers_of(&text))
}
