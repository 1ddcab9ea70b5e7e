//! The accelerator's configuration for one page: as an operator would write it who wants all of the page moved.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use spdy_page::graph::PageGraph;
use spdy_page::replica::Replica;
use spdy_proxy::config::{Config, Listen, SiteConfig};
use spdy_proxy::sites::Sites;
use spdy_rewrite::config::{Config as Rewrite, HostConfig, Scheme};
use url::{Host, Url};

/// What capabilities are made with. Every host is listed, so none is ever made.
const SECRET: &[u8; 32] = b"a secret of nobody, in the lab's";

/// Where the accelerator stands, in the half of the block for benchmarks that no server is given.
pub(super) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1));

/// The names that are the site's: the host of the page's document, and of whatever redirects led to it.
pub(super) fn names(replica: &Replica, graph: &PageGraph) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut node = graph.document(replica);
    while let Some(at) = node {
        let url = &replica.exchanges[graph.nodes[at].exchange].url;
        let Some(Host::Domain(host)) = url.host() else {
            let host = url.host_str().unwrap_or_default();
            return Err(format!("an accelerator answers for a name, not for {host}"));
        };
        if !names.iter().any(|name| name == host) {
            names.push(host.to_owned());
        }
        node = graph.nodes[at].parent();
    }
    Ok(names)
}

/// The sites of an accelerator for `replica`, whose clients come in TLS if `secure`.
pub(super) fn sites(replica: &Replica, names: &[String], secure: bool) -> Result<Sites, String> {
    let own = &replica.document().url;
    let port = own.port().unwrap_or(if secure { 443 } else { 80 });
    let door = vec![SocketAddr::new(ADDRESS, port)];
    let (tls, plain) = match secure {
        true => (door, Vec::new()),
        false => (Vec::new(), door),
    };
    let mut origin = own.clone();
    origin.set_path("/");
    origin.set_query(None);
    origin.set_fragment(None);
    let config = Config {
        listen: Listen {
            tls,
            plain,
            ..Listen::default()
        },
        site: vec![SiteConfig {
            names: names.to_vec(),
            origin,
            address: None,
            keep_host: true,
            rewrite: Rewrite {
                hosts: others(replica, names),
                ..Rewrite::default()
            },
        }],
        ..Config::default()
    };
    Sites::compile(&config, SECRET).map_err(|error| error.to_string())
}

/// Every host that is not the site's, with all kinds of resources: over both schemes, since what `//host/` means hangs on the page's,
/// or at the port that a URL names over its scheme.
fn others(replica: &Replica, names: &[String]) -> Vec<HostConfig> {
    let urls = replica.exchanges.iter().map(|exchange| &exchange.url);
    let others: BTreeSet<(String, Scheme)> = urls.flat_map(|url| other(url, names)).collect();
    let listed = |(host, scheme): (String, Scheme)| HostConfig {
        scheme,
        ..HostConfig::everything(&host)
    };
    others.into_iter().map(listed).collect()
}

fn other(url: &Url, names: &[String]) -> Vec<(String, Scheme)> {
    let Some(Host::Domain(host)) = url.host() else {
        return Vec::new(); // addresses are never moved
    };
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return Vec::new(),
    };
    let host = host.trim_end_matches('.');
    let is_own = names.iter().any(|name| name == host);
    match url.port() {
        _ if is_own => Vec::new(),
        Some(port) => vec![(format!("{host}:{port}"), scheme)],
        None => vec![
            (host.to_owned(), Scheme::Http),
            (host.to_owned(), Scheme::Https),
        ],
    }
}
