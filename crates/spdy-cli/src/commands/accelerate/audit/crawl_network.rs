//! Restricts the addresses that a crawl connects to: public ones, and those that the command line names.
//!
//! ```text
//! the page's own host ── all of its addresses private? ──▶ these addresses, looked up once ──┐ allowed on ports
//! hosts that a page names or redirects to ──────────────▶ public addresses ──────────────────┴▶ 80, 443 and the page's own
//! --resolve HOST:PORT:ADDRESS ──────────────────────────▶ this address ────────────────────────▶ allowed on this port
//! ```
//!
//! A third party may have written the page. Without these rules the page could make the operator's machine send requests to its own
//! loopback, to its private network or to a cloud's metadata. A host that has both private and public addresses is refused, even if it
//! is the page's own.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use anyhow::Context;
use spdy::runtime::BoxFuture;
use spdy_client::config::Config;
use spdy_net::network::{BoxIo, Network, SharedNetwork, SystemNetwork};
use spdy_resolver::address_rules::AddressRules;
use spdy_resolver::guarded_network::GuardedNetwork;
use url::{Host, Url};

/// Returns the network for a crawl that starts with the page at `url`. If the page is in a private network, its addresses are added to
/// `config.resolve`.
///
/// # Errors
///
/// The page's host cannot be resolved.
pub(crate) async fn crawl_network(url: &Url, config: &mut Config) -> anyhow::Result<SharedNetwork> {
    let mut rules = AddressRules::default();
    rules.ports.extend(url.port());
    let mut named_targets = BTreeSet::new();
    for (_, port, address) in &config.resolve {
        match port {
            Some(port) => {
                named_targets.insert(SocketAddr::new(*address, *port));
            }
            None => rules.allow.push((*address).into()),
        }
    }
    if let Some(Host::Domain(host)) = url.host() {
        // The operator named this host, so it may be a single label (`backend`), which the rules otherwise refuse.
        rules.hosts.insert(host.to_owned());
    }
    for (host, address) in private_addresses(url, config, &rules).await? {
        rules.allow.push(address.into());
        config.resolve.push((host, None, address));
    }
    Ok(Arc::new(CrawlNetwork {
        guarded: GuardedNetwork::new(Arc::new(SystemNetwork), rules),
        named_targets,
    }))
}

/// A guarded network with exceptions.
struct CrawlNetwork {
    guarded: GuardedNetwork,
    /// Addresses with the port that the command line names for each. An address is not allowed on the port of another.
    named_targets: BTreeSet<SocketAddr>,
}

impl Network for CrawlNetwork {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        self.guarded.resolve(host)
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        match self.named_targets.contains(&to) {
            true => SystemNetwork.connect(to),
            false => self.guarded.connect(to),
        }
    }
}

/// The page's host with each of its addresses, if `rules` deny all of them. Empty if any is public, or if `config.resolve` has the host.
async fn private_addresses(
    url: &Url,
    config: &Config,
    rules: &AddressRules,
) -> anyhow::Result<Vec<(String, IpAddr)>> {
    let host = match url.host() {
        Some(Host::Ipv4(address)) => return Ok(denied_literal(url, address.into(), rules)),
        Some(Host::Ipv6(address)) => return Ok(denied_literal(url, address.into(), rules)),
        Some(Host::Domain(host)) => host,
        None => return Ok(Vec::new()),
    };
    let port = url.port_or_known_default();
    let mut resolved = config.resolve.iter();
    if resolved.any(|(name, at, _)| name == host && (at.is_none() || *at == port)) {
        return Ok(Vec::new());
    }
    let addresses = SystemNetwork.resolve(host).await;
    let addresses = addresses.with_context(|| format!("cannot fetch {url}"))?;
    Ok(
        match addresses
            .iter()
            .any(|address| rules.check(*address).is_ok())
        {
            true => Vec::new(),
            false => addresses
                .into_iter()
                .map(|address| (host.to_owned(), address))
                .collect(),
        },
    )
}

/// The page's host, which is the IP address `address`, if `rules` deny it. An allowed address needs no exception.
fn denied_literal(url: &Url, address: IpAddr, rules: &AddressRules) -> Vec<(String, IpAddr)> {
    let host = url.host_str().unwrap_or_default();
    let host = host.trim_matches(['[', ']']).to_owned();
    match rules.check(address) {
        Ok(()) => Vec::new(),
        Err(_) => vec![(host, address)],
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use spdy_resolver::address_rules::OriginDenial;

    use super::*;

    /// Whether `network` denies `to`. Any other error means that the address has no listener.
    async fn refuses(network: &SharedNetwork, to: &str) -> bool {
        let to: SocketAddr = to.parse().unwrap();
        match network.connect(to).await {
            Ok(_) => false,
            Err(error) => error
                .get_ref()
                .is_some_and(|error| error.downcast_ref::<OriginDenial>().is_some()),
        }
    }

    #[tokio::test]
    async fn a_crawl_connects_to_private_addresses_only_if_allowed() {
        let mut config = Config::default();
        config.resolve = vec![
            (
                "cdn.test".to_owned(),
                Some(81),
                "127.0.0.3".parse().unwrap(),
            ),
            (
                "img.test".to_owned(),
                Some(83),
                "127.0.0.4".parse().unwrap(),
            ),
        ];
        let page = Url::parse("http://127.0.0.2:1/").unwrap();
        let network = crawl_network(&page, &mut config).await.unwrap();
        for (to, is_refused) in [
            ("127.0.0.2:1", false),
            ("127.0.0.2:80", false),
            ("127.0.0.3:81", false),
            ("127.0.0.4:83", false),
            // An address on the port of another one.
            ("127.0.0.2:81", true),
            ("127.0.0.3:1", true),
            ("127.0.0.3:80", true),
            ("127.0.0.3:83", true),
            ("127.0.0.4:81", true),
            ("192.0.66.1:81", true),
            ("127.0.0.1:1", true),
            ("127.0.0.2:82", true),
            ("169.254.169.254:80", true),
            ("10.0.0.1:80", true),
            ("[::1]:1", true),
        ] {
            assert_eq!(refuses(&network, to).await, is_refused, "{to}");
        }
        let mut config = Config::default();
        let page = Url::parse("https://192.0.66.1/").unwrap();
        let network = crawl_network(&page, &mut config).await.unwrap();
        assert!(refuses(&network, "127.0.0.1:443").await);
        assert!(config.resolve.is_empty());
    }
}
