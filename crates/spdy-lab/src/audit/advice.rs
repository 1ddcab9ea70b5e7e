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
use spdy_rewrite::rules::path_normalization::is_in;
use spdy_rewrite::rules::public_cdns::{is_public_cdn, package_path};
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::verdict::SkipReason;
use spdy_sim::accelerator::Rewriting;
use spdy_sim::accelerator::delivery::{Delivery, DirectReason};
use spdy_sim::accelerator::site::OperatorConfig;
use spdy_sim::load::Page;
use spdy_sim::options::is_same_site;
use url::{Position, Url};

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
    /// Hosts without an entry, because a part of their resources would stay there, and the page would load slower or
    /// hardly faster over some network.
    pub left_out: BTreeSet<String>,
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

/// What an entry of the configuration is for.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Place {
    host: String,
    scheme: Scheme,
    /// All of the host (`/`), or a package of a public CDN whose modules are listed.
    path: String,
}

impl Advice {
    /// Advice for `replica` behind an accelerator configured as `operator`, whose clients use TLS if `secure`, without entries for the hosts
    /// `left_out`. The second value is a configuration that also lists resources that are direct for another reason: a report with it
    /// shows that reason.
    ///
    /// # Errors
    ///
    /// The reason why an accelerator cannot serve it.
    pub fn of(
        replica: &Replica,
        graph: &PageGraph,
        operator: &OperatorConfig,
        secure: bool,
        left_out: BTreeSet<String>,
    ) -> Result<(Self, OperatorConfig), String> {
        let mut all = operator.clone();
        let mut wishes: Vec<(usize, Place, Kind)> = Vec::new();
        let mut loaders: Vec<Place> = Vec::new();
        let mut looked_at = page_with_operator(replica, graph, &all);
        for _ in 0..MAX_PASSES {
            let mut found = unlisted(&looked_at, secure)?;
            found.retain(|wish| !wishes.contains(wish) && !left_out.contains(&wish.1.host));
            let mut new_loaders = lone_loaders(&looked_at, secure, &wishes)?;
            new_loaders.retain(|place| !loaders.contains(place));
            if found.is_empty() && new_loaders.is_empty() {
                break;
            }
            for (node, place, kind) in found {
                list(&mut all.rewrite, &place, kind);
                // A resource that needs another entry than the one it got first.
                wishes.retain(|(earlier, ..)| *earlier != node);
                wishes.push((node, place, kind));
            }
            for place in &new_loaders {
                except(&mut all.rewrite, place);
            }
            loaders.extend(new_loaders);
            looked_at = page_with_operator(replica, graph, &all);
        }
        let deliveries = &looked_at
            .accelerated(Rewriting::warm(secure))
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
        for place in &loaders {
            except(&mut taken.rewrite, place);
        }
        let before = &operator.rewrite.hosts;
        let changed = taken.rewrite.hosts.iter().filter(|it| !before.contains(it));
        let exchange = |node: usize| &replica.exchanges[graph.nodes[node].exchange];
        // The entry with the longest path; of several for one path, the one with the query, or else the first.
        let entry_of = |node: usize, place: &Place| {
            let url = &exchange(node).url;
            let target = &url[Position::BeforePath..Position::AfterQuery];
            let is_match =
                |it: &&HostConfig| is_of_host(it, place) && is_in(url.path(), path_of(it));
            let matching = taken.rewrite.hosts.iter().rev().filter(is_match);
            matching.max_by_key(|it| (path_of(it).len(), it.path == target))
        };
        let hosts = changed.map(|entry| {
            let is_of_entry = |(node, place, _): &&(usize, Place, Kind)| {
                entry_of(*node, place).is_some_and(|it| std::ptr::eq(it, entry))
            };
            let of_entry = wishes.iter().filter(is_of_entry);
            let nodes: BTreeSet<usize> = of_entry.map(|(node, ..)| *node).collect();
            let body = |node: &usize| exchange(*node).body.len() as u64;
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
            left_out,
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

/// Resources that are direct because they are not listed, by node, with the entry that each needs.
fn unlisted(page: &Page, secure: bool) -> Result<Vec<(usize, Place, Kind)>, String> {
    let seen = page
        .accelerated(Rewriting::warm(secure))
        .map_err(Clone::clone)?;
    let unlisted = |(node, delivery): (usize, &Delivery)| {
        let Delivery::Direct(reason) = delivery else {
            return None;
        };
        let (place, kind) = match reason {
            DirectReason::Rule {
                reason: SkipReason::Refused(refusal),
                named: Some(named),
            } if is_unlisted(refusal) => (whole_host(&named.url), named.kind),
            DirectReason::Rule {
                reason: SkipReason::SharedModule,
                named: Some(named),
            } => (package(&named.url), named.kind),
            // A policy source is written for a package or a path, not for a single capability.
            DirectReason::Rule {
                reason: SkipReason::Policy,
                named: Some(named),
            } if named.kind == Kind::Script => (package_or_path(&named.url), named.kind),
            // A module of a public CDN imports it from the root.
            DirectReason::Unmapped => {
                let exchange = page.graph().nodes[node].exchange;
                (
                    package(&page.replica().exchanges[exchange].url),
                    Kind::Script,
                )
            }
            DirectReason::DerivedUrl(kind) => {
                let exchange = page.graph().nodes[node].exchange;
                (package(&page.replica().exchanges[exchange].url), *kind)
            }
            _ => return None,
        };
        Some((node, place?, kind))
    };
    Ok(seen
        .deliveries
        .iter()
        .enumerate()
        .filter_map(unlisted)
        .collect())
}

/// Proxied scripts that build URLs from their own, where no package can be listed, or listing it did not help (`wishes`). With a capability
/// for one URL, such a script lacks the others, so it must stay at its host.
fn lone_loaders(
    page: &Page,
    secure: bool,
    wishes: &[(usize, Place, Kind)],
) -> Result<Vec<Place>, String> {
    let seen = page
        .accelerated(Rewriting::warm(secure))
        .map_err(Clone::clone)?;
    let url = |node: usize| &page.replica().exchanges[page.graph().nodes[node].exchange].url;
    let loader = |(node, delivery): (usize, &Delivery)| {
        let is_derived = matches!(delivery, Delivery::Direct(DirectReason::DerivedUrl(_)));
        let script = page.graph().nodes[node].parent();
        let is_listed = wishes.iter().any(|(listed, ..)| *listed == node);
        let cannot_list = is_listed || package(url(node)).is_none();
        let script = script.filter(|_| is_derived && cannot_list)?;
        let path = url(script).path().to_owned();
        Some(Place {
            path,
            ..whole_host(url(script))?
        })
    };
    let deliveries = seen.deliveries.iter().enumerate();
    Ok(deliveries.filter_map(loader).collect())
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

/// All of the host of `url`.
fn whole_host(url: &Url) -> Option<Place> {
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
    let path = "/".to_owned();
    Some(Place { host, scheme, path })
}

/// The package of a public CDN that has the module `url`. Modules import others by relative URLs, which capabilities for single URLs do
/// not allow. If the package is one path, the query belongs to it: an import map has no entry for all queries of a path.
fn package(url: &Url) -> Option<Place> {
    let host = whole_host(url)?;
    let mut path = package_path(&host.host, url.path())?.to_owned();
    if let Some(query) = url.query().filter(|_| !path.ends_with('/')) {
        path.extend(["?", query]);
    }
    Some(Place { path, ..host })
}

/// The path of an entry, without the query with which modules import it.
fn path_of(entry: &HostConfig) -> &str {
    without_query(&entry.path)
}

fn without_query(path: &str) -> &str {
    path.split('?').next().unwrap_or_default()
}

/// The package of a public CDN that has the script `url`, or the script alone; `None` if the host is no public CDN.
fn package_or_path(url: &Url) -> Option<Place> {
    let host = whole_host(url)?;
    let path = url.path().to_owned();
    let script = || {
        is_public_cdn(&host.host).then(|| Place {
            path,
            ..host.clone()
        })
    };
    package(url).or_else(script)
}

/// Whether `entry` is for the host of `place`.
fn is_of_host(entry: &HostConfig, place: &Place) -> bool {
    entry.host == place.host && entry.scheme == place.scheme
}

/// Adds `kind` to the existing entries for this place, and to one for all of it.
fn list(rewrite: &mut Rewrite, place: &Place, kind: Kind) {
    if place.path.contains('^') {
        return; // no browser sends it like this: the recording is of another client
    }
    let mut is_there = false;
    let path = without_query(&place.path);
    for entry in &mut rewrite.hosts {
        if is_of_host(entry, place) && is_in(path_of(entry), path) {
            is_there |= entry.path == place.path;
            add(&mut entry.kinds, kind);
        }
    }
    if is_there {
        return;
    }
    let at = |path: &str| {
        let mut hosts = rewrite.hosts.iter();
        hosts.find(|entry| is_of_host(entry, place) && path_of(entry) == path)
    };
    // Entries for one path have the same settings except the query.
    if let Some(twin) = at(path) {
        let has_query = place.path != path;
        let is_possible = !has_query || !twin.shared && twin.kinds.contains(&Kind::Script);
        let twin = HostConfig {
            path: place.path.clone(),
            ..twin.clone()
        };
        rewrite.hosts.extend(is_possible.then_some(twin));
        return;
    }
    // Of several entries, the one with the longest path applies: this one, also to kinds that the others have.
    let mut kinds = at("/").map_or_else(Vec::new, |host| host.kinds.clone());
    add(&mut kinds, kind);
    rewrite.hosts.push(HostConfig {
        scheme: place.scheme,
        path: place.path.clone(),
        kinds,
        shared: place.path == "/" && is_public_cdn(&place.host),
        ..HostConfig::passive(&place.host)
    });
}

/// Excepts the path of `place` from the entry that governs it.
fn except(rewrite: &mut Rewrite, place: &Place) {
    let governing = rewrite.hosts.iter_mut().filter(|entry| {
        is_of_host(entry, place)
            && is_in(&place.path, path_of(entry))
            && path_of(entry) != place.path
    });
    if let Some(entry) = governing.max_by_key(|entry| entry.path.len())
        && !entry.except.contains(&place.path)
    {
        entry.except.push(place.path.clone());
    }
}

fn add(kinds: &mut Vec<Kind>, kind: Kind) {
    if !kinds.contains(&kind) {
        kinds.push(kind);
        kinds.sort_unstable();
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

#[cfg(test)]
mod tests {
    use spdy_rewrite::rules::Rules;

    use super::*;

    #[test]
    fn entries_for_one_path_have_the_same_settings() {
        let of_operator = HostConfig {
            path: "/a?x".to_owned(),
            kinds: vec![Kind::Script],
            accept_language: true,
            ..HostConfig::passive("esm.sh")
        };
        let mut rewrite = Rewrite {
            hosts: vec![of_operator],
            ..Rewrite::default()
        };
        let mut add = |path: &str, kind| {
            let place = Place {
                host: "esm.sh".to_owned(),
                scheme: Scheme::Https,
                path: path.to_owned(),
            };
            list(&mut rewrite, &place, kind);
        };
        add("/a?y", Kind::Style);
        add("/abc?z", Kind::Script);
        let hosts = rewrite.hosts.iter();
        let settings: Vec<_> = hosts
            .map(|it| (&it.path[..], &it.kinds[..], it.accept_language))
            .collect();
        let both = &[Kind::Style, Kind::Script][..];
        let expected = [
            ("/a?x", both, true),
            ("/a?y", both, true),
            ("/abc?z", &[Kind::Script][..], false),
        ];
        assert_eq!(settings, expected);
        let site = Url::parse("https://www.page.test").expect("a URL");
        Rules::compile(&site, &rewrite, None).expect("the entries are valid");
    }
}
