//! How each resource of a page is delivered, and counts by host.

use std::collections::BTreeMap;

use serde::Serialize;
use spdy_page::head;
use spdy_page::replica::Kind;
use spdy_sim::accelerator::delivery::{Delivery, DirectReason};
use spdy_sim::accelerator::{AcceleratedPage, Rewriting};
use spdy_sim::load::Page;
use spdy_sim::options::is_same_site;

/// How the resources of a page are delivered behind an accelerator.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Survey {
    /// The hosts: the page's own first, then by bytes, the most first.
    pub hosts: Vec<Host>,
    /// The resources, in the order in which a browser discovers them.
    pub resources: Vec<Resource>,
}

/// One host of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Host {
    /// Its name, with the port if it is not the scheme's default.
    pub host: String,
    /// True for a host of the site itself.
    pub is_own: bool,
    /// True if it belongs to the same site by the public suffix list.
    pub is_of_site: bool,
    /// Resources that the page requests from it.
    pub resources: usize,
    /// Bytes of their bodies, as transferred.
    pub bytes: u64,
    /// Resources that come through the accelerator under the site's name.
    pub proxied: usize,
    /// Resources that come through the accelerator under a name of the host's own.
    pub aliased: usize,
    /// Resources that the client requests from this host; 0 for the site's own host.
    pub direct: usize,
    /// Bytes of their bodies.
    pub direct_bytes: u64,
    /// Responses that the accelerator may serve to every client for some time.
    pub cacheable: usize,
}

/// One resource of a page.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resource {
    /// Its URL without the accelerator.
    pub url: String,
    /// Its kind.
    pub kind: Kind,
    /// Bytes of its body, as transferred.
    pub bytes: u64,
    /// How it is delivered: `own`, `proxied` (under the site's name), `aliased` (under a name of its host's own) or `direct`.
    pub delivery: &'static str,
    /// The name of the reason, if it is `direct`.
    pub reason: Option<&'static str>,
    /// The reason in words.
    pub reason_text: Option<String>,
    /// Seconds for which the accelerator may serve the response to every client; `None` if it may not store it, or does not have it.
    pub shared_lifetime_s: Option<u64>,
}

impl Survey {
    /// Surveys `page` for clients with TLS if `secure`.
    ///
    /// # Errors
    ///
    /// The reason why an accelerator cannot serve it.
    pub fn of(page: &Page, secure: bool) -> Result<Self, String> {
        let seen = page
            .accelerated(Rewriting::warm(secure))
            .map_err(Clone::clone)?;
        Ok(Self {
            hosts: hosts(page, seen),
            resources: resources(page, seen),
        })
    }

    /// Number of hosts that a client contacts behind the accelerator, and without it.
    #[must_use]
    pub fn hosts_contacted(&self) -> (usize, usize) {
        let is_contacted = |host: &&Host| host.is_own || host.direct > 0;
        (
            self.hosts.iter().filter(is_contacted).count(),
            self.hosts.len(),
        )
    }
}

impl Host {
    /// Whether most of its bytes stay there.
    pub(super) fn keeps_most_bytes(&self) -> bool {
        self.direct_bytes * 2 > self.bytes
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
        |((node, delivered), lifetime_s): ((&spdy_page::graph::Node, &Delivery), &Option<u64>)| {
            let exchange = &page.replica().exchanges[node.exchange];
            let (delivery, reason) = match delivered {
                Delivery::Own => ("own", None),
                Delivery::Proxied => ("proxied", None),
                Delivery::Aliased => ("aliased", None),
                Delivery::Direct(reason) => ("direct", Some(reason)),
            };
            Resource {
                url: exchange.url.to_string(),
                kind: exchange.kind,
                bytes: exchange.body.len() as u64,
                delivery,
                reason: reason.map(DirectReason::name),
                reason_text: reason.map(ToString::to_string),
                shared_lifetime_s: lifetime_s.filter(|_| reason.is_none()),
            }
        };
    nodes.map(resource).collect()
}

fn hosts(page: &Page, seen: &AcceleratedPage) -> Vec<Host> {
    let document = &page.replica().document().url;
    let own = document.host_str().unwrap_or_default();
    let mut hosts: BTreeMap<String, Host> = BTreeMap::new();
    for ((node, delivery), lifetime_s) in page
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
            proxied: 0,
            aliased: 0,
            direct: 0,
            direct_bytes: 0,
            cacheable: 0,
        });
        host.resources += 1;
        let bytes = exchange.body.len() as u64;
        host.bytes += bytes;
        match delivery {
            Delivery::Own => host.is_own = true,
            Delivery::Proxied => host.proxied += 1,
            Delivery::Aliased => host.aliased += 1,
            Delivery::Direct(_) => {
                host.direct += 1;
                host.direct_bytes += bytes;
            }
        }
        let is_here = !matches!(delivery, Delivery::Direct(_));
        host.cacheable += usize::from(is_here && lifetime_s.is_some_and(|seconds| seconds > 0));
    }
    let mut hosts: Vec<_> = hosts.into_values().collect();
    // Stable: hosts of equal size stay in the order of names.
    hosts.sort_by_key(|host| (!host.is_own, std::cmp::Reverse(host.bytes)));
    hosts
}
