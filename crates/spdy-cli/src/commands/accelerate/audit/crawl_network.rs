//! Restricts the addresses that a crawl connects to: public ones, and those that the command line names.
//!
//! ```text
//! the page's own host ── all of its addresses private? ──▶ these, and no look-up again ──┐
//! --resolve HOST:PORT:ADDRESS ──────────────────────────▶ this address and port ─────────┼──▶ allowed
//! what a page names, or redirects to ── anybody's address, ports 80, 443 and these ──────┘
//! ```
//!
//! A page is written by others. Without this it would have the operator's machine ask its own loopback, the network around it and a
//! cloud's metadata. A host that has a private address among public ones is refused whole, the page's own too.

use std::net::IpAddr;
use std::sync::Arc;

use anyhow::Context;
use spdy_client::config::Config;
use spdy_dns::address_rules::AddressRules;
use spdy_dns::guarded_network::GuardedNetwork;
use spdy_net::network::{Network, SharedNetwork, SystemNetwork};
use url::{Host, Url};

/// The network for the page at `url`, which `config` will fetch by; a private page's addresses are put into `config.resolve`.
///
/// # Errors
///
/// The page's host has no address.
pub(crate) async fn crawl_network(url: &Url, config: &mut Config) -> anyhow::Result<SharedNetwork> {
    let mut rules = AddressRules::default();
    rules.ports.extend(url.port());
    for (_, port, address) in &config.resolve {
        rules.allow.push((*address).into());
        rules.ports.extend(port);
    }
    if let Some(Host::Domain(host)) = url.host() {
        // What a single label means, the operator knows.
        rules.hosts.insert(host.to_owned());
    }
    for (host, address) in private_addresses(url, config, &rules).await? {
        rules.allow.push(address.into());
        config.resolve.push((host, None, address));
    }
    let guarded = GuardedNetwork::new(Arc::new(SystemNetwork), rules);
    Ok(Arc::new(guarded))
}

/// The addresses of the page's host, if none of them is the world's.
async fn private_addresses(
    url: &Url,
    config: &Config,
    rules: &AddressRules,
) -> anyhow::Result<Vec<(String, IpAddr)>> {
    let host = match url.host() {
        Some(Host::Ipv4(address)) => return Ok(literal_address(url, address.into(), rules)),
        Some(Host::Ipv6(address)) => return Ok(literal_address(url, address.into(), rules)),
        Some(Host::Domain(host)) => host,
        None => return Ok(Vec::new()),
    };
    let port = url.port_or_known_default();
    let mut named = config.resolve.iter();
    if named.any(|(name, at, _)| name == host && (at.is_none() || *at == port)) {
        return Ok(Vec::new());
    }
    let addresses = SystemNetwork.resolve(host).await;
    let addresses = addresses.with_context(|| format!("cannot fetch {url}"))?;
    Ok(match addresses.iter().any(|at| rules.check(*at).is_ok()) {
        true => Vec::new(),
        false => addresses
            .into_iter()
            .map(|address| (host.to_owned(), address))
            .collect(),
    })
}

fn literal_address(url: &Url, address: IpAddr, rules: &AddressRules) -> Vec<(String, IpAddr)> {
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

    use spdy_dns::address_rules::OriginDenial;

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
        let mut config = Config {
            resolve: vec![(
                "cdn.test".to_owned(),
                Some(81),
                "127.0.0.3".parse().unwrap(),
            )],
            ..Config::default()
        };
        let page = Url::parse("http://127.0.0.2:1/").unwrap();
        let network = crawl_network(&page, &mut config).await.unwrap();
        for (to, is_refused) in [
            ("127.0.0.2:1", false),
            ("127.0.0.3:81", false),
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
