//! The accelerator's configuration for one page: an operator's, or one that proxies the whole page.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::SystemTime;

use spdy_page::freshness;
use spdy_page::graph::PageGraph;
use spdy_page::replica::Replica;
use spdy_proxy::config::Config;
use spdy_proxy::config::cache::CacheConfig;
use spdy_proxy::config::listen::ListenConfig;
use spdy_proxy::config::site::SiteConfig;
use spdy_proxy::sites::site_table::Sites;
use spdy_rewrite::rules::capability::{Key, Keys};
use spdy_rewrite::rules::config::{Config as Rewrite, HostConfig, Scheme};
use url::{Host, Url};

use crate::runtime::WALL_EPOCH;

/// The secret of capabilities. The length of a capability does not depend on it.
const SECRET: &[u8; 32] = b"a secret of nobody, in the lab's";
/// The name of its key in URLs.
const KEY_NAME: char = '1';

/// The accelerator's address, in the half of the benchmark block that is not used for servers.
pub(super) const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 0, 1));

/// An operator's configuration of a page's site.
#[derive(Clone, Debug, Default)]
pub struct OperatorConfig {
    /// Names of the site besides those of the page.
    pub names: Vec<String>,
    /// Rules for proxied hosts.
    pub rewrite: Rewrite,
    /// Rules for the cache.
    pub cache: CacheConfig,
}

/// The wall time of the recording, so that responses that were fresh then are fresh; else the time of the document's response; else
/// the default time of all loads.
pub(super) fn wall_now(replica: &Replica) -> SystemTime {
    freshness::recorded(replica).unwrap_or(SystemTime::UNIX_EPOCH + WALL_EPOCH)
}

/// The names of the site: the host of the page's document, hosts of redirects that led to it, and configured names.
pub(super) fn names(
    replica: &Replica,
    graph: &PageGraph,
    operator: Option<&OperatorConfig>,
) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    let mut node = graph.document(replica);
    while let Some(at) = node {
        let url = &replica.exchanges[graph.nodes[at].exchange].url;
        let Some(Host::Domain(host)) = url.host() else {
            let host = url.host_str().unwrap_or_default();
            return Err(format!("an accelerator needs a hostname, found {host}"));
        };
        if !names.iter().any(|name| name == host) {
            names.push(host.to_owned());
        }
        node = graph.nodes[at].parent();
    }
    for name in operator.iter().flat_map(|operator| &operator.names) {
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
    Ok(names)
}

/// The sites of an accelerator for `replica`, with TLS for clients if `secure`, and with the URLs of its paper if `paper_urls`.
pub(super) fn sites(
    replica: &Replica,
    names: &[String],
    secure: bool,
    paper_urls: bool,
    operator: Option<&OperatorConfig>,
) -> Result<Sites, String> {
    let all_moved = || Rewrite {
        hosts: match paper_urls {
            true => foreign_hosts_one_scheme(replica, names),
            false => others(replica, names),
        },
        ..Rewrite::default()
    };
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
        listen: ListenConfig {
            tls: Some(tls),
            plain,
            ..ListenConfig::default()
        },
        site: vec![SiteConfig {
            names: names.to_vec(),
            origin,
            address: None,
            keep_host: true,
            websocket: true,
            servers: Vec::new(),
            health: None,
            redirect_to_https: false,
            error_pages: Default::default(),
            hsts: None,
            paths: Vec::new(),
            compress_private: false,
            cache_mib: None,
            disk_mib: None,
            rewrite: operator.map_or_else(all_moved, |operator| operator.rewrite.clone()),
            file: None,
        }],
        ..Config::default()
    };
    let key = Key::new(KEY_NAME, SECRET).map_err(|error| error.to_string())?;
    let keys = Keys::new(key, None);
    let sites = match paper_urls {
        true => Sites::compile_with_literal_urls(&config, &keys),
        false => Sites::compile(&config, &keys),
    };
    sites.map_err(|error| error.to_string())
}

/// Every host that is not the site's, with all kinds of resources: with both schemes, since the scheme of `//host/` is the page's,
/// and with the ports of its URLs.
fn others(replica: &Replica, names: &[String]) -> Vec<HostConfig> {
    let urls = replica.exchanges.iter().map(|exchange| &exchange.url);
    let others: BTreeSet<(String, Scheme)> = urls.flat_map(|url| other(url, names)).collect();
    let listed = |(host, scheme): (String, Scheme)| HostConfig {
        scheme,
        ..HostConfig::all_kinds(&host)
    };
    others.into_iter().map(listed).collect()
}

/// The same, but each host only with the scheme of the first URL that names it: the paper's URLs have no scheme.
fn foreign_hosts_one_scheme(replica: &Replica, names: &[String]) -> Vec<HostConfig> {
    let mut all = others(replica, names);
    let is_named_so = |host: &HostConfig| {
        let mut urls = replica.exchanges.iter().map(|exchange| &exchange.url);
        let is_of_host = |(name, _): &(String, Scheme)| *name == host.host;
        let first = urls.find(|url| other(url, names).iter().any(is_of_host));
        first.is_some_and(|url| url.scheme() == host.scheme.name())
    };
    all.retain(is_named_so);
    all
}

fn other(url: &Url, names: &[String]) -> Vec<(String, Scheme)> {
    let Some(Host::Domain(host)) = url.host() else {
        return Vec::new(); // addresses are never proxied
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
