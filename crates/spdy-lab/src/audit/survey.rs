//! Every resource of a page, what becomes of it, and the same by host.

use std::collections::BTreeMap;

use serde::Serialize;
use spdy_page::head;
use spdy_page::replica::Kind;
use spdy_sim::accelerator::delivery::{Delivery, DirectReason};
use spdy_sim::load::{AcceleratedPage, Page};
use spdy_sim::options::is_same_site;

/// What becomes of a page behind an accelerator.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// The page's own hosts first, then by bytes, the most first.
    pub hosts: Vec<Host>,
    /// In the order in which a browser finds them.
    pub resources: Vec<Resource>,
}

/// One host of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// Its name, with the port where it is not the scheme's own.
    pub host: String,
    /// Whether the site answers for it.
    pub is_own: bool,
    /// Whether it is of the same site, by the list of public suffixes.
    pub is_of_site: bool,
    /// Resources that the page requests from it.
    pub resources: usize,
    /// Bytes of their bodies, as they were transferred.
    pub bytes: u64,
    /// Resources that come through the accelerator under the site's name.
    pub moved: usize,
    /// Resources that come through the accelerator under a name of the host's own.
    pub named: usize,
    /// Resources that stay; of the site's own host none do.
    pub left: usize,
    /// Responses that the accelerator may serve to every client for a while.
    pub kept: usize,
}

/// One resource of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resource {
    /// Where it is, without the accelerator.
    pub url: String,
    /// What it is to the page.
    pub kind: Kind,
    /// Bytes of its body, as they were transferred.
    pub bytes: u64,
    /// What becomes of it: `own`, `moved` (under the site's name), `named` (under a name of its host's own) or `left`.
    pub becomes: &'static str,
    /// The name of the reason, if it is left.
    pub reason: Option<&'static str>,
    /// The reason in words.
    pub why: Option<String>,
    /// For how many seconds the accelerator may serve the response to every client; `None` if it may not store it, or does not have it.
    pub kept_s: Option<u64>,
}

impl Survey {
    /// Of `page`, whose clients come in TLS if `secure`.
    ///
    /// # Errors
    ///
    /// Why there can be no accelerator before it.
    pub fn of(page: &Page, secure: bool) -> Result<Self, String> {
        let seen = page.accelerated(secure, false).map_err(Clone::clone)?;
        Ok(Self {
            hosts: hosts(page, seen),
            resources: resources(page, seen),
        })
    }

    /// Number of hosts that a client contacts behind the accelerator, and without it.
    #[must_use]
    pub fn hosts_contacted(&self) -> (usize, usize) {
        let is_contacted = |host: &&Host| host.is_own || host.left > 0;
        (
            self.hosts.iter().filter(is_contacted).count(),
            self.hosts.len(),
        )
    }
}

fn resources(page: &Page, seen: &AcceleratedPage) -> Vec<Resource> {
    let nodes = page
        .graph()
        .nodes
        .iter()
        .zip(&seen.deliveries)
        .zip(&seen.shared_lifetime_s);
    let resource =
        |((node, fate), lifetime_s): ((&spdy_page::graph::Node, &Delivery), &Option<u64>)| {
            let exchange = &page.replica().exchanges[node.exchange];
            let (becomes, left) = match fate {
                Delivery::Own => ("own", None),
                Delivery::Proxied => ("moved", None),
                Delivery::Aliased => ("named", None),
                Delivery::Direct(left) => ("left", Some(left)),
            };
            Resource {
                url: exchange.url.to_string(),
                kind: exchange.kind,
                bytes: exchange.body.len() as u64,
                becomes,
                reason: left.map(DirectReason::name),
                why: left.map(ToString::to_string),
                kept_s: lifetime_s.filter(|_| left.is_none()),
            }
        };
    nodes.map(resource).collect()
}

fn hosts(page: &Page, seen: &AcceleratedPage) -> Vec<Host> {
    let document = &page.replica().document().url;
    let own = document.host_str().unwrap_or_default();
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for ((node, fate), lifetime_s) in page
        .graph()
        .nodes
        .iter()
        .zip(&seen.deliveries)
        .zip(&seen.shared_lifetime_s)
    {
        let exchange = &page.replica().exchanges[node.exchange];
        let name = head::authority(&exchange.url);
        let host = hosts.entry(name.clone()).or_insert_with(|| Host {
            is_own: false,
            is_of_site: is_same_site(own, exchange.url.host_str().unwrap_or_default()),
            host: name,
            resources: 0,
            bytes: 0,
            moved: 0,
            named: 0,
            left: 0,
            kept: 0,
        });
        host.resources += 1;
        host.bytes += exchange.body.len() as u64;
        match fate {
            Delivery::Own => host.is_own = true,
            Delivery::Proxied => host.moved += 1,
            Delivery::Aliased => host.named += 1,
            Delivery::Direct(_) => host.left += 1,
        }
        let is_here = !matches!(fate, Delivery::Direct(_));
        host.kept += usize::from(is_here && lifetime_s.is_some_and(|seconds| seconds > 0));
    }
    let mut hosts: Vec<_> = hosts.into_values().collect();
    // Stable: what is alike stays in the order of names.
    hosts.sort_by_key(|host| (!host.is_own, std::cmp::Reverse(host.bytes)));
    hosts
}
