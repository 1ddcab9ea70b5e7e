//! The shipped replicas have their stated properties.

use spdy_page::builtin;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::head::Head;
use spdy_page::replica::{Kind, Replica};

fn kinds(replica: &Replica, kind: Kind) -> usize {
    replica
        .exchanges
        .iter()
        .filter(|exchange| exchange.kind == kind)
        .count()
}

fn mean(replica: &Replica, of: fn(&spdy_page::replica::Exchange) -> usize) -> usize {
    replica.exchanges.iter().map(of).sum::<usize>() / replica.exchanges.len()
}

#[test]
fn flags_is_196_small_images_on_one_host() {
    let flags = builtin::flags();
    assert_eq!(flags.exchanges.len(), 197);
    assert_eq!(kinds(&flags, Kind::Image), 196);
    assert_eq!(flags.hosts(), ["www.world-flags.test"]);
    assert!(
        (1_000..1_300).contains(&flags.document().body.len()),
        "{} bytes of document",
        flags.document().body.len()
    );
    let heads = (
        mean(&flags, |exchange| exchange.request_head.len()),
        mean(&flags, |exchange| exchange.response_head.len()),
    );
    assert!(
        (335..=365).contains(&heads.0) && (205..=225).contains(&heads.1),
        "heads of {heads:?} bytes on average"
    );
    assert!(flags.source.contains("public domain"));
}

#[test]
fn portal_is_44_resources_on_7_hosts_and_320_kb() {
    let portal = builtin::portal();
    assert_eq!(portal.exchanges.len(), 44);
    assert_eq!(
        (
            kinds(&portal, Kind::Document),
            kinds(&portal, Kind::Stylesheet),
            kinds(&portal, Kind::Image)
        ),
        (1, 1, 42)
    );
    assert_eq!(portal.hosts().len(), 7);
    let bytes: usize = portal
        .exchanges
        .iter()
        .map(|exchange| exchange.body.len())
        .sum();
    assert!(bytes.abs_diff(320_000) < 3_200, "{bytes} bytes");
    let mut addresses: Vec<_> = portal
        .exchanges
        .iter()
        .map(|exchange| exchange.address)
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 7);
}

#[test]
fn their_documents_name_every_resource_as_the_bytes_arrive() {
    for replica in [builtin::flags(), builtin::portal()] {
        let graph = PageGraph::of(&replica);
        assert_eq!(graph.nodes.len(), replica.exchanges.len());
        assert_eq!(graph.nodes[0].trigger, Trigger::Start);
        let mut last = 0;
        for node in &graph.nodes[1..] {
            let Trigger::Bytes { parent: 0, at_byte } = node.trigger else {
                panic!("{}: {node:?}", replica.name)
            };
            assert!(
                at_byte >= last && at_byte <= replica.document().body.len() as u64,
                "{}: {node:?}",
                replica.name
            );
            last = at_byte;
            assert!(node.before_load && !node.before_dom_content_loaded && node.delay.is_zero());
            assert_eq!(node.blocks_scripts, node.kind == Kind::Stylesheet);
        }
    }
}

#[test]
fn their_urls_are_plain_http_and_their_lengths_true() {
    for replica in [builtin::flags(), builtin::portal()] {
        for exchange in &replica.exchanges {
            assert_eq!(exchange.url.scheme(), "http");
            let head = Head::parse(&exchange.response_head).unwrap();
            assert_eq!(
                head.content_length(),
                Some(exchange.body.len() as u64),
                "{}",
                exchange.url
            );
            assert!(exchange.body_is_real);
        }
    }
}

#[test]
fn they_are_written_byte_for_byte_as_read() {
    for name in builtin::NAMES {
        let opened = spdy_page::open::open(name).unwrap();
        assert_eq!(
            spdy_page::archive::encode(&opened.replica, true),
            builtin::bytes(name).unwrap(),
            "{name}"
        );
    }
}
