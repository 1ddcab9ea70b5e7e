//! Advice: configuration lines that would proxy resources that are direct only because they are not listed.
//!
//! A proxied style sheet is read, and names more resources. So the resources found are listed and the page is examined again, until
//! nothing new is found. Hosts that the operator denies, and resources that no entry would proxy, are not advised.

use std::collections::BTreeSet;

use serde::Serialize;
use spdy_page::graph::PageGraph;
use spdy_page::replica::Replica;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::rules::config::{Config as Rewrite, HostConfig, Scheme};
use spdy_rewrite::rules::public_cdns::is_public_cdn;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::verdict::SkipReason;
use spdy_sim::accelerator::delivery::{Delivery, DirectReason, ResolvedReference};
use spdy_sim::accelerator::site::OperatorConfig;
use spdy_sim::load::Page;
use spdy_sim::options::is_same_site;
use url::Url;

/// Number of passes that examine a page with the entries of the last pass. Chains of imported style sheets are seldom longer.
const MAX_PASSES: usize = 16;

/// Configuration lines that would proxy more.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Advice {
    /// Other hosts of the page's own site: on the site's address and certificate, their resources need not be proxied.
    pub own_hosts: Vec<String>,
    /// Entries to add, or to replace those for the same host and path.
    pub hosts: Vec<HostAdvice>,
}

/// An entry of the list of hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostAdvice {
    /// The entry.
    #[serde(flatten)]
    pub entry: HostConfig,
    /// True if it replaces an existing entry.
    pub replaces: bool,
    /// Number of resources that the entry would proxy in addition.
    pub resources: usize,
    /// Bytes of them.
    pub bytes: u64,
}

/// A host in the configuration.
type HostKey = (String, Scheme);

impl Advice {
    /// Advice for `replica` behind an accelerator configured as `operator`, whose clients use TLS if `secure`. The second value is a
    /// configuration that also lists resources that are direct for another reason: a report with it shows that reason.
    ///
    /// # Errors
    ///
    /// The reason why an accelerator cannot serve it.
    pub fn of(
        replica: &Replica,
        graph: &PageGraph,
        operator: &OperatorConfig,
        secure: bool,
    ) -> Result<(Self, OperatorConfig), String> {
        let mut all = operator.clone();
        let mut wishes: Vec<(usize, HostKey, Kind)> = Vec::new();
        let mut looked_at = page_with_operator(replica, graph, &all);
        for _ in 0..MAX_PASSES {
            let found = unlisted(&looked_at, secure)?;
            if found.is_empty() {
                break;
            }
            for (node, named) in found {
                if let Some(place) = place(&named.url) {
                    list(&mut all.rewrite, &place, named.kind);
                    wishes.push((node, place, named.kind));
                }
            }
            looked_at = page_with_operator(replica, graph, &all);
        }
        let deliveries = &looked_at
            .accelerated(secure, false)
            .map_err(Clone::clone)?
            .deliveries;
        // A resource that is direct for another reason, listed or not, needs no entry.
        wishes.retain(|(node, ..)| {
            matches!(deliveries[*node], Delivery::Proxied | Delivery::Aliased)
        });
        let mut taken = operator.clone();
        for (_, place, kind) in &wishes {
            list(&mut taken.rewrite, place, *kind);
        }
        let before = &operator.rewrite.hosts;
        let changed = taken.rewrite.hosts.iter().filter(|it| !before.contains(it));
        let hosts = changed.map(|entry| {
            let of_entry = wishes.iter().filter(|(_, place, _)| is_for(entry, place));
            let nodes: BTreeSet<usize> = of_entry.map(|(node, ..)| *node).collect();
            let body = |node: &usize| {
                let exchange = graph.nodes[*node].exchange;
                replica.exchanges[exchange].body.len() as u64
            };
            let is_same = |it: &&HostConfig| {
                (&it.host, it.scheme, &it.path) == (&entry.host, entry.scheme, &entry.path)
            };
            HostAdvice {
                entry: entry.clone(),
                replaces: before.iter().any(|it| is_same(&it)),
                resources: nodes.len(),
                bytes: nodes.iter().map(body).sum(),
            }
        });
        let advice = Self {
            own_hosts: own_hosts(replica, graph, deliveries),
            hosts: hosts.collect(),
        };
        Ok((advice, all))
    }

    /// True if there is no advice.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }
}

fn page_with_operator(replica: &Replica, graph: &PageGraph, operator: &OperatorConfig) -> Page {
    Page::with_graph(replica.clone(), graph.clone()).with_operator_config(operator.clone())
}

/// Resources that are direct because they are not listed, by node.
fn unlisted(page: &Page, secure: bool) -> Result<Vec<(usize, ResolvedReference)>, String> {
    let seen = page.accelerated(secure, false).map_err(Clone::clone)?;
    let unlisted = |(node, delivery): (usize, &Delivery)| match delivery {
        Delivery::Direct(DirectReason::Rule {
            reason: SkipReason::Refused(refusal),
            named: Some(named),
        }) if is_unlisted(refusal) => Some((node, ResolvedReference::clone(named))),
        _ => None,
    };
    Ok(seen
        .deliveries
        .iter()
        .enumerate()
        .filter_map(unlisted)
        .collect())
}

fn is_unlisted(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::NotListed { .. }
            | Refusal::PortNotListed { .. }
            | Refusal::PathNotListed { .. }
            | Refusal::KindNotListed { .. }
            | Refusal::PrivateName { .. }
    )
}

/// The host of `url` in the configuration.
fn place(url: &Url) -> Option<HostKey> {
    let scheme = match url.scheme() {
        "https" => Scheme::Https,
        "http" => Scheme::Http,
        _ => return None,
    };
    let host = url.host_str()?;
    let host = match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Some((host, scheme))
}

fn is_for(entry: &HostConfig, (host, scheme): &HostKey) -> bool {
    entry.host == *host && entry.scheme == *scheme
}

/// Adds `kind` to the existing entries for exactly this host, and to one for all of its paths.
fn list(rewrite: &mut Rewrite, place: &HostKey, kind: Kind) {
    let mut is_there = false;
    for entry in rewrite
        .hosts
        .iter_mut()
        .filter(|entry| is_for(entry, place))
    {
        is_there |= entry.path == "/";
        if !entry.kinds.contains(&kind) {
            entry.kinds.push(kind);
            entry.kinds.sort_unstable();
        }
    }
    if !is_there {
        let (host, scheme) = place;
        rewrite.hosts.push(HostConfig {
            scheme: *scheme,
            kinds: vec![kind],
            shared: is_public_cdn(host),
            ..HostConfig::passive(host)
        });
    }
}

/// Hosts of the page's own site that the accelerator treats as other hosts.
fn own_hosts(replica: &Replica, graph: &PageGraph, deliveries: &[Delivery]) -> Vec<String> {
    let own = replica.document().url.host_str().unwrap_or_default();
    let others = graph.nodes.iter().zip(deliveries);
    let others = others.filter(|(_, delivery)| **delivery != Delivery::Own);
    let hosts = others.filter_map(|(node, _)| replica.exchanges[node.exchange].url.domain());
    let of_site = hosts.filter(|host| is_same_site(own, host));
    let of_site: BTreeSet<&str> = of_site.collect();
    of_site.into_iter().map(str::to_owned).collect()
}
