//! Urgency of each request of a page.
//!
//! A recording of Chromium has the urgency. For any other recording it is estimated by Chromium's rules. Sheets, fonts, resources
//! that scripts fetch, and scripts that block the parser are [`High`](Urgency::High), unless an image precedes the script. The first
//! five images of a document are [`Medium`](Urgency::Medium) (Chromium excludes small ones, but a replica does not have their sizes).
//!
//! Chromium 49 has other rules: the urgency of a resource depends only on its kind, and on whether a script is asynchronous.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use spdy_net::protocol::Protocol;
use spdy_page::body_start::body_start;
use spdy_page::graph::{Node, Trigger};
use spdy_page::head::Head;
use spdy_page::replica::{Exchange, Kind, Replica};

use crate::load::Page;
use crate::options::{Options, RaceProtocol, Scheduler};
use crate::page_load::{Urgency, UrgencyPlan};

/// Number of images of a document that are more urgent than the rest.
const BOOSTED_IMAGES: usize = 5;

/// The plan of `page`, loaded over `protocol`.
#[must_use]
pub(crate) fn urgency_plan(page: &Page, protocol: RaceProtocol, options: &Options) -> UrgencyPlan {
    let (replica, nodes) = (page.replica(), &page.graph().nodes[..]);
    let mut plan = UrgencyPlan {
        urgency: match options.scheduler {
            Scheduler::Chromium49 => nodes.iter().map(of_chromium_49).collect(),
            Scheduler::None | Scheduler::Chromium => guess(nodes),
        },
        ..UrgencyPlan::default()
    };
    plan.same_url = same_urls(replica, nodes);
    let announced = announced_by_alt_svc(replica, nodes);
    let (mut hosts, mut partitions) = (BTreeMap::new(), BTreeMap::new());
    for (number, node) in nodes.iter().enumerate() {
        let exchange = &replica.exchanges[node.exchange];
        let recorded = exchange.observed.priority.as_deref();
        if options.scheduler != Scheduler::Chromium49
            && let Some(urgency) = recorded.and_then(of_priority)
        {
            plan.urgency[number] = urgency;
        }
        if options.scheduler == Scheduler::Chromium
            && node.kind == Kind::Image
            && let Some(after) = exchange.observed.raised_after
        {
            plan.raised_after.insert(number, after);
        }
        let host = exchange.url.host_str().unwrap_or_default();
        let next = hosts.len();
        plan.host.push(*hosts.entry(host).or_insert(next));
        let next = partitions.len();
        let partition = (host, page.is_separate(number, options));
        plan.partition
            .push(*partitions.entry(partition).or_insert(next));
        let spoken = page.protocol_for(protocol, options, host);
        plan.is_multiplexed.push(match spoken {
            Protocol::Http1 => false,
            Protocol::Http3 => announced.contains(host),
            _ => true,
        });
        // A host without a recorded address counts as public.
        plan.is_measured
            .push(exchange.address.is_none_or(is_public));
        if node.kind == Kind::Document && !node.is_redirect {
            let at = body_start(exchange).or_else(|| first_image(nodes, number));
            plan.body_at.insert(number, at.unwrap_or(0));
        }
    }
    plan
}

/// The nodes whose URLs other nodes have too, with the numbers of their URLs. A cache answers only GET.
fn same_urls(replica: &Replica, nodes: &[Node]) -> BTreeMap<usize, usize> {
    let mut by_url = BTreeMap::<&str, Vec<usize>>::new();
    for (number, node) in nodes.iter().enumerate() {
        let exchange = &replica.exchanges[node.exchange];
        if exchange.method == "GET" {
            by_url
                .entry(exchange.url.as_str())
                .or_default()
                .push(number);
        }
    }
    let shared = by_url.into_values().filter(|nodes| nodes.len() > 1);
    let numbered = shared.enumerate();
    numbered
        .flat_map(|(url, nodes)| nodes.into_iter().map(move |node| (node, url)))
        .collect()
}

/// The hosts of which a response to `nodes` has `Alt-Svc` for HTTP/3: Chromium does not know that other hosts over HTTP/3 have priorities.
fn announced_by_alt_svc<'a>(replica: &'a Replica, nodes: &[Node]) -> BTreeSet<&'a str> {
    let announces = |exchange: &&Exchange| {
        let head = Head::parse(&exchange.response_head);
        head.is_some_and(|head| {
            let mut fields = head.values("alt-svc");
            fields.any(|field| field.windows(2).any(|window| window == b"h3"))
        })
    };
    let exchanges = nodes.iter().map(|node| &replica.exchanges[node.exchange]);
    exchanges
        .filter(announces)
        .filter_map(|exchange| exchange.url.host_str())
        .collect()
}

/// True if the Internet routes packets to `address` (IANA's registries of special addresses, as far as servers can have them).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [a, b, ..] = address.octets();
            let is_shared = a == 100 && b & 0xc0 == 64;
            let is_of_benchmarks = a == 198 && b & 0xfe == 18;
            !(address.is_private()
                || address.is_loopback()
                || address.is_link_local()
                || address.is_documentation()
                || a == 0
                || a >= 224
                || is_shared
                || is_of_benchmarks)
        }
        IpAddr::V6(address) => {
            // Only 2000::/3 is allocated; 2001:db8::/32 of it is for documentation.
            let [first, second, ..] = address.segments();
            first & 0xe000 == 0x2000 && (first, second) != (0x2001, 0xdb8)
        }
    }
}

/// The urgency of Chromium's priority `name`.
fn of_priority(name: &str) -> Option<Urgency> {
    match name {
        "VeryHigh" | "High" => Some(Urgency::High),
        "Medium" => Some(Urgency::Medium),
        "Low" | "VeryLow" => Some(Urgency::Low),
        _ => None,
    }
}

/// The urgency in Chromium 49: its priorities `MEDIUM` and above are [`High`](Urgency::High), and those below `LOW` are
/// [`Low`](Urgency::Low).
fn of_chromium_49(node: &Node) -> Urgency {
    match node.kind {
        Kind::Document | Kind::Stylesheet => Urgency::High,
        Kind::Script if node.blocks_parser_at.is_none() => Urgency::Low,
        Kind::Script | Kind::Font | Kind::Fetch => Urgency::Medium,
        Kind::Image | Kind::Media | Kind::Other => Urgency::Low,
    }
}

fn guess(nodes: &[Node]) -> Vec<Urgency> {
    let mut images = BTreeMap::<Option<usize>, usize>::new();
    let guess = |node: &Node| match node.kind {
        Kind::Document | Kind::Stylesheet | Kind::Font | Kind::Fetch => Urgency::High,
        Kind::Script => match (node.blocks_parser_at, node.parent()) {
            (None, _) => Urgency::Low,
            (Some(at), parent) => {
                let image = parent.and_then(|parent| first_image(nodes, parent));
                match image.is_some_and(|image| image < at) {
                    true => Urgency::Medium,
                    false => Urgency::High,
                }
            }
        },
        Kind::Image => {
            let before = images.entry(node.parent()).or_default();
            *before += 1;
            match *before <= BOOSTED_IMAGES {
                true => Urgency::Medium,
                false => Urgency::Low,
            }
        }
        Kind::Media | Kind::Other => Urgency::Low,
    };
    nodes.iter().map(guess).collect()
}

/// The offset of the first image in `document`: images are in the body.
fn first_image(nodes: &[Node], document: usize) -> Option<u64> {
    let images = nodes.iter().filter(|node| node.kind == Kind::Image);
    let places = images.filter_map(|node| match node.trigger {
        Trigger::Bytes { parent, at_byte } if parent == document => Some(at_byte),
        _ => None,
    });
    places.min()
}

#[cfg(test)]
mod tests {
    use spdy_page::{builtin, head};

    use super::*;

    #[test]
    fn urgency_is_recorded_or_guessed_by_chromiums_rules() {
        let mut replica = builtin::portal();
        let options = Options::default();
        let count = |replica: &Replica, expected| {
            let plan = urgency_plan(&Page::new(replica.clone()), RaceProtocol::H2, &options);
            assert!(plan.is_multiplexed.iter().all(|&it| it));
            assert!(!plan.is_measured.iter().any(|&it| it), "192.0.2.0/24");
            assert_eq!(plan.body_at.len(), 1, "{:?}", plan.body_at);
            plan.urgency.iter().filter(|&&it| it == expected).count()
        };
        assert_eq!(count(&replica, Urgency::Medium), BOOSTED_IMAGES);
        for exchange in &mut replica.exchanges {
            exchange.observed.priority = Some("VeryLow".to_owned());
        }
        assert_eq!(count(&replica, Urgency::Low), replica.exchanges.len());
    }

    #[test]
    fn hosts_over_http3_have_priorities_if_alt_svc_announces_it() {
        let mut replica = builtin::portal();
        let announce = |exchange: &mut Exchange, value| {
            exchange.response_head = head::with_field(&exchange.response_head, "Alt-Svc", value);
        };
        announce(&mut replica.exchanges[0], Some("h3=\":443\"; ma=86400"));
        announce(&mut replica.exchanges[1], Some("clear"));
        let own = replica.exchanges[0].url.host_str().unwrap().to_owned();
        let page = Page::new(replica);
        let options = Options {
            scheduler: Scheduler::Chromium,
            ..Options::default()
        };
        let is_multiplexed = |protocol| {
            let plan = urgency_plan(&page, protocol, &options);
            let nodes = page.graph().nodes.iter().zip(plan.is_multiplexed);
            let of =
                |node: &Node| page.replica().exchanges[node.exchange].url.host_str() == Some(&own);
            nodes.map(|(node, it)| (of(node), it)).collect::<Vec<_>>()
        };
        let by_h3 = is_multiplexed(RaceProtocol::H3);
        assert!(by_h3.iter().all(|(is_own, it)| is_own == it));
        assert!(by_h3.iter().any(|(is_own, _)| !is_own));
        assert!(is_multiplexed(RaceProtocol::H2).iter().all(|(_, it)| *it));
    }

    #[test]
    fn addresses_of_internet_servers_are_public() {
        let all = |texts: &[&str], expected| {
            for text in texts {
                let address = text.parse().expect("an address");
                assert_eq!(is_public(address), expected, "{text}");
            }
        };
        all(
            &[
                "208.80.154.225",
                "198.17.255.255",
                "198.20.0.0",
                "100.128.0.0",
                "2620:0:861::1",
            ],
            true,
        );
        all(
            &[
                "198.18.0.0",
                "198.19.255.255",
                "100.64.0.0",
                "10.0.0.1",
                "203.0.113.9",
                "224.0.0.1",
                "2001:db8::1",
                "fd00::1",
            ],
            false,
        );
    }
}
