//! Distribution of a page's resources over hosts: as recorded, all on its own host, or its own resources spread over several hosts.
//!
//! ```text
//!   recorded            folded                            sharded over 3
//!   a.test/             a.test/                           a.test/
//!   a.test/1.png        a.test/1.png                      a.test/1.png
//!   a.test/2.png        a.test/2.png                      shard1.a.test/2.png
//!   a.test/3.png        a.test/3.png                      shard2.a.test/3.png
//!   b.test/4.png        a.test/.spdy/1/b.test/4.png       b.test/4.png
//! ```
//!
//! Bodies, heads, and references stay as recorded, so one graph over the exchanges fits all three.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::num::NonZeroU32;

use spdy_page::graph::PageGraph;
use spdy_page::head;
use spdy_page::replica::{Kind, Replica};
use url::{Host, Url};

use crate::load::Page;

/// Prefix of folded resources on the page's own host: the accelerator's form of a foreign URL.
const FOLDED_PREFIX: &str = "/.spdy/1/";

/// The address of a sharded page without a recorded address. It is in the benchmark block (RFC 2544), and `page.rs` does not use it.
const SHARD_FALLBACK_ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 19, 255, 254));

/// Maximum number of hosts for a page's own resources: its own host, and labels 1 to 99.
pub const MAX_SHARDS: u32 = 100;

/// Distribution of a page's resources over hosts.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub enum HostLayout {
    /// On their recorded hosts.
    #[default]
    Recorded,
    /// All on the page's own host.
    Folded,
    /// The resources of the page's own host are spread over so many hosts, including itself: style sheets, scripts, fonts, images and
    /// media in turn. Documents, and resources that scripts fetch, stay. All hosts have one address, as names for one server had.
    Sharded(NonZeroU32),
}

impl HostLayout {
    /// Folded, sharded, or as recorded if `shards` is 1.
    ///
    /// # Errors
    ///
    /// If both are requested.
    pub fn of(fold: bool, shards: NonZeroU32) -> Result<Self, String> {
        match (fold, shards.get()) {
            (false, 1) => Ok(Self::Recorded),
            (true, 1) => Ok(Self::Folded),
            (false, _) => Ok(Self::Sharded(shards)),
            (true, shards) => Err(format!(
                "fold and shard={shards} exclude each other: give one of them"
            )),
        }
    }

    /// Number of hosts for the page's own resources.
    #[must_use]
    pub const fn shards(self) -> u32 {
        match self {
            Self::Recorded | Self::Folded => 1,
            Self::Sharded(shards) => shards.get(),
        }
    }

    /// Prepares `replica` for loading, with its resources on the hosts of `self`.
    #[must_use]
    pub fn page(self, replica: &Replica) -> Page {
        let graph = PageGraph::of(replica);
        match self {
            Self::Recorded => Page::with_graph(replica.clone(), graph),
            Self::Folded => {
                let own = head::authority(&replica.document().url);
                let mut foreign = replica.hosts();
                foreign.retain(|host| *host != own);
                Page::with_graph(folded(replica, &foreign), graph)
            }
            Self::Sharded(shards) => {
                let own = &replica.document().url;
                let names = (1..shards.get()).map(|shard| shard_name(own, shard));
                Page::with_graph(sharded(replica, shards), graph).with_own_hosts(names.collect())
            }
        }
    }
}

/// Returns `replica` with the resources of `hosts` on the page's own host. Exchanges keep their indexes.
#[must_use]
pub fn folded(replica: &Replica, hosts: &[String]) -> Replica {
    let mut replica = replica.clone();
    let (own, address) = {
        let page = &replica.exchanges[replica.start];
        (page.url.clone(), page.address)
    };
    for exchange in &mut replica.exchanges {
        let host = head::authority(&exchange.url);
        if !hosts.contains(&host) {
            continue;
        }
        let mut url = own.clone();
        url.set_path(&format!("{FOLDED_PREFIX}{host}{}", exchange.url.path()));
        url.set_query(exchange.url.query());
        exchange.url = url;
        exchange.address = address;
    }
    replica
}

/// Returns `replica` with its own resources on `shards` hosts. Exchanges keep their indexes, and those of one URL stay on one host.
fn sharded(replica: &Replica, shards: NonZeroU32) -> Replica {
    let mut replica = replica.clone();
    let page = replica.document();
    let own = page.url.clone();
    let address = match own.host() {
        // The recorded address may be that of a proxy.
        Some(Host::Ipv4(address)) => address.into(),
        Some(Host::Ipv6(address)) => address.into(),
        _ => page.address.unwrap_or(SHARD_FALLBACK_ADDRESS),
    };
    let authority = head::authority(&own);
    let mut shard_of: BTreeMap<Url, u32> = BTreeMap::new();
    for exchange in &mut replica.exchanges {
        if head::authority(&exchange.url) != authority {
            continue;
        }
        exchange.address = Some(address);
        if matches!(exchange.kind, Kind::Document | Kind::Fetch | Kind::Other) {
            continue;
        }
        let next = shard_of.len() as u32 % shards;
        match *shard_of.entry(exchange.url.clone()).or_insert(next) {
            0 => {}
            shard => name_shard(&mut exchange.url, shard),
        }
    }
    replica
}

/// The host with number `shard` beside that of `own`. An address has no subdomains, so it gets names of an unused domain.
fn shard_name(own: &Url, shard: u32) -> String {
    match own.host() {
        Some(Host::Domain(own)) => format!("shard{shard}.{own}"),
        _ => format!("shard{shard}.test"),
    }
}

/// Replaces the host of `url` by the one with number `shard`.
fn name_shard(url: &mut Url, shard: u32) {
    let name = shard_name(url, shard);
    url.set_host(Some(&name))
        .unwrap_or_else(|reason| panic!("cannot move {url} to {name}: {reason}"));
}

#[cfg(test)]
mod tests {
    use spdy_page::builtin;

    use super::*;

    fn urls(replica: &Replica) -> Vec<String> {
        let urls = replica.exchanges.iter().map(|it| it.url.to_string());
        urls.collect()
    }

    fn shards(count: u32) -> NonZeroU32 {
        NonZeroU32::new(count).unwrap()
    }

    #[test]
    fn a_page_is_folded_or_sharded_and_not_both() {
        assert_eq!(HostLayout::of(false, shards(1)), Ok(HostLayout::Recorded));
        assert_eq!(HostLayout::of(true, shards(1)), Ok(HostLayout::Folded));
        assert_eq!(
            HostLayout::of(false, shards(4)),
            Ok(HostLayout::Sharded(shards(4)))
        );
        let both = HostLayout::of(true, shards(4)).unwrap_err();
        assert!(both.contains("shard=4"), "{both}");
    }

    #[test]
    fn own_resources_are_spread_evenly_and_all_else_stays() {
        let flags = builtin::flags();
        let spread = sharded(&flags, shards(4));
        let own = flags.document().url.host_str().unwrap().to_owned();
        let mut counts = BTreeMap::<String, usize>::new();
        for exchange in &spread.exchanges {
            *counts
                .entry(exchange.url.host_str().unwrap().to_owned())
                .or_default() += 1;
        }
        assert_eq!(spread.document().url, flags.document().url);
        // A document and 196 images.
        let names = [1, 2, 3].map(|shard| format!("shard{shard}.{own}"));
        assert_eq!(counts[&own], 1 + 49);
        assert!(names.iter().all(|name| counts[name] == 49), "{counts:?}");
        let address = spread.exchanges[0].address;
        assert!(spread.exchanges.iter().all(|it| it.address == address));
        assert_eq!(urls(&sharded(&flags, shards(1))), urls(&flags));

        let portal = builtin::portal();
        let foreign = |replica: &Replica| {
            let mut urls = urls(replica);
            urls.retain(|url| !url.contains("www.portal.test"));
            urls
        };
        assert_eq!(foreign(&sharded(&portal, shards(7))), foreign(&portal));
    }

    #[test]
    fn a_url_requested_twice_stays_on_one_shard() {
        let mut portal = builtin::portal();
        let twice = portal.exchanges.clone();
        portal.exchanges.extend(twice);
        let urls = urls(&sharded(&portal, shards(3)));
        let (first, second) = urls.split_at(urls.len() / 2);
        assert_eq!(first, second);
    }

    #[test]
    fn a_page_at_an_address_gets_shards_too() {
        for own in ["http://192.0.2.1:8080/a.png", "https://[2001:db8::1]/a.png"] {
            let mut url = Url::parse(own).unwrap();
            let port = url.port();
            name_shard(&mut url, 2);
            assert_eq!((url.host_str(), url.port()), (Some("shard2.test"), port));
        }
    }
}
