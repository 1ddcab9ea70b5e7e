//! Changes of a page or of its network.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;
use spdy_net::protocol::Protocol;
use spdy_netem::loss::{LossModel, Probability};
use spdy_netem::profile::Profile;
use spdy_page::graph::{Node, PageGraph};
use spdy_page::head;
use spdy_page::replica::Replica;
use spdy_sim::options::{RaceProtocol, is_same_site};
use url::Url;

/// One change.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "remedy", rename_all = "kebab-case")]
pub enum Remedy {
    /// The resources of these hosts come from the page's own host: without a lookup, a connection and a certificate for them.
    Fold {
        /// Authorities, as URLs name them.
        hosts: Vec<String>,
        /// Number of their resources.
        resources: usize,
    },
    /// The page's host pushes the resources of this host that the page's graph needs (SPDY).
    Push,
    /// The head of the page's document has hints for these URLs (`Link: <...>; rel=preload`).
    Hint {
        /// The hinted URLs.
        urls: Vec<String>,
        /// Their nodes.
        #[serde(skip)]
        nodes: Vec<usize>,
    },
    /// The script does not block the parser (`async`), or no script waits for the style sheet (loaded by a script).
    Later {
        /// Its URL.
        url: String,
        /// Its node.
        #[serde(skip)]
        node: usize,
    },
    /// The page without this host, and without resources that only its resources requested. Never a host of the page's own site.
    Without {
        /// An authority, as URLs name it.
        host: String,
        /// Number of its resources.
        resources: usize,
    },
    /// Another protocol.
    Protocol {
        /// Its name.
        #[serde(serialize_with = "by_name")]
        #[cfg_attr(feature = "schema", schemars(with = "String"))]
        protocol: RaceProtocol,
    },
    /// A worse network: not a remedy, but a comparison.
    Network {
        /// The change.
        change: Degradation,
    },
}

/// 1 % of all packets.
const ONE_PERCENT: Probability = Probability::from_ppb(10_000_000).expect("less than all");

/// How a network becomes worse.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Degradation {
    /// Twice the round-trip time.
    DoubleRtt,
    /// Half the rate in both directions.
    HalfRate,
    /// 1 % loss in each direction, if the network has less.
    Loss,
}

impl Degradation {
    /// All values.
    pub const ALL: [Self; 3] = [Self::DoubleRtt, Self::HalfRate, Self::Loss];

    /// Returns `profile` with this change.
    #[must_use]
    pub fn apply(self, profile: &Profile) -> Profile {
        let mut worse = profile.clone();
        let path = &mut worse.path;
        match self {
            Self::DoubleRtt => path.rtt = path.rtt.saturating_mul(2),
            Self::HalfRate => {
                path.up = path.up.halved();
                path.down = path.down.halved();
            }
            Self::Loss => {
                for loss in [&mut path.loss_up, &mut path.loss_down] {
                    if share(*loss) < ONE_PERCENT {
                        *loss = LossModel::Bernoulli(ONE_PERCENT);
                    }
                }
            }
        }
        worse
    }
}

/// Long-term loss rate.
fn share(loss: LossModel) -> Probability {
    match loss {
        LossModel::None => Probability::default(),
        LossModel::Bernoulli(share) | LossModel::Bursts { average: share, .. } => share,
        // No text of a network has this model; it is left unchanged.
        LossModel::GilbertElliott(_) => Probability::ONE,
    }
}

fn by_name<S: serde::Serializer>(protocol: &RaceProtocol, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(protocol.name())
}

/// Maximum number of tested remedies of one kind, those with the most resources first.
pub const MAX_PER_KIND: usize = 64;

/// All remedies for a page that is loaded by `protocol` over `profile`.
#[must_use]
pub fn remedies(
    replica: &Replica,
    graph: &PageGraph,
    protocol: RaceProtocol,
    profile: &Profile,
) -> Vec<Remedy> {
    let mut remedies = of_hosts(replica, graph);
    if matches!(protocol.wire_protocol(), Protocol::Spdy(_)) {
        remedies.push(Remedy::Push);
    }
    remedies.extend(of_resources(replica, graph));
    let others = RaceProtocol::DEFAULTS.into_iter().chain([RaceProtocol::H3]);
    let others = others.filter(|other| *other != protocol);
    remedies.extend(others.map(|protocol| Remedy::Protocol { protocol }));
    let worse = Degradation::ALL.into_iter();
    let worse = worse.filter(|worse| worse.apply(profile) != *profile);
    remedies.extend(worse.map(|change| Remedy::Network { change }));
    remedies
}

/// All hosts folded, then each one; then each one removed.
fn of_hosts(replica: &Replica, graph: &PageGraph) -> Vec<Remedy> {
    let hosts = other_hosts(replica);
    let mut remedies = Vec::new();
    if hosts.len() > 1 {
        remedies.push(Remedy::Fold {
            resources: hosts.iter().map(|(_, resources)| resources).sum(),
            hosts: hosts.iter().map(|(host, _)| host.clone()).collect(),
        });
    }
    let most = &hosts[..hosts.len().min(MAX_PER_KIND)];
    remedies.extend(most.iter().cloned().map(|(host, resources)| Remedy::Fold {
        hosts: vec![host],
        resources,
    }));
    // Own hosts are the host of the document, those that redirect to it, and their other ports and names.
    let own_site = leading_hosts(replica, graph);
    let is_of_site = |host: &str| {
        own_site
            .iter()
            .any(|own| is_same_site(own, host_name(host)))
    };
    let others = most.iter().filter(|(host, _)| !is_of_site(host));
    let without = |(host, resources)| Remedy::Without { host, resources };
    remedies.extend(others.cloned().map(without));
    remedies
}

/// Hints at all late resources, then at each one; then blocking scripts and style sheets.
fn of_resources(replica: &Replica, graph: &PageGraph) -> Vec<Remedy> {
    let url = |node: usize| {
        let exchange = graph.nodes[node].exchange;
        replica.exchanges[exchange].url.to_string()
    };
    let hint = |nodes: Vec<usize>| Remedy::Hint {
        urls: nodes.iter().copied().map(url).collect(),
        nodes,
    };
    let late = graph.preload_candidates(replica);
    let mut remedies = Vec::new();
    if late.len() > 1 {
        remedies.push(hint(late.clone()));
    }
    let each = late.into_iter().take(MAX_PER_KIND);
    remedies.extend(each.map(|node| hint(vec![node])));
    let holds_up = |(node, facts): (usize, &Node)| {
        let holds_up = facts.blocks_parser_at.is_some() || facts.is_written || facts.blocks_scripts;
        let url = (holds_up && !facts.is_redirect).then(|| url(node))?;
        Some(Remedy::Later { url, node })
    };
    let nodes = graph.nodes.iter().enumerate();
    remedies.extend(nodes.filter_map(holds_up).take(MAX_PER_KIND));
    remedies
}

/// The authority of the page's own document.
pub(super) fn own_host(replica: &Replica) -> String {
    head::authority(&replica.exchanges[replica.start].url)
}

/// Hosts other than the page's own with their numbers of resources, the largest first.
fn other_hosts(replica: &Replica) -> Vec<(String, usize)> {
    let own = own_host(replica);
    let mut resources = BTreeMap::<String, usize>::new();
    for exchange in &replica.exchanges {
        let host = head::authority(&exchange.url);
        if host != own && matches!(exchange.url.scheme(), "http" | "https") {
            *resources.entry(host).or_default() += 1;
        }
    }
    let mut hosts: Vec<_> = resources.into_iter().collect();
    hosts.sort_by_key(|(_, resources)| Reverse(*resources));
    hosts
}

/// Names of the document's host and of the hosts of the redirects that lead to it, without ports.
fn leading_hosts(replica: &Replica, graph: &PageGraph) -> Vec<String> {
    let name = |url: &Url| url.host_str().unwrap_or_default().to_owned();
    let mut at = graph.document(replica);
    let mut names = vec![name(&replica.document().url)];
    while let Some(node) = at.map(|at| &graph.nodes[at]) {
        names.push(name(&replica.exchanges[node.exchange].url));
        at = node.parent();
    }
    names
}

/// The name in an authority, without its port.
fn host_name(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // The colons of an IPv6 address are inside of its brackets.
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => authority,
    }
}
