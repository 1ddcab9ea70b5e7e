//! Invariants of every replica and its graph, from any source.

use spdy_page::graph::{Node, PageGraph, Trigger, WaitsFor};
use spdy_page::head::head_len;
use spdy_page::replica::{Initiator, Kind, Replica};

/// The invariants of a replica from a reader: complete heads, and valid indices.
pub(crate) fn assert_sound(replica: &Replica, what: &str) {
    let count = replica.exchanges.len();
    assert!(
        replica.start < count,
        "{what}: start {} of {count}",
        replica.start
    );
    for (index, exchange) in replica.exchanges.iter().enumerate() {
        for head in [&exchange.request_head, &exchange.response_head] {
            assert_eq!(
                head_len(head),
                Some(head.len()),
                "{what}: exchange {index} has a head {head:?}"
            );
        }
        if let Initiator::Resource { index: from, .. } | Initiator::Redirect { index: from } =
            exchange.initiator
        {
            assert!(
                from < count && from != index,
                "{what}: exchange {index} is initiated by {from}"
            );
        }
    }
}

/// The invariants of a graph: one node per exchange, one start, parents before children, offsets within bodies.
pub(crate) fn assert_lawful(replica: &Replica, graph: &PageGraph, what: &str) {
    let mut seen = vec![false; replica.exchanges.len()];
    // What each node or one above it waits for.
    let mut waits: Vec<[bool; 2]> = Vec::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        assert!(
            !std::mem::replace(&mut seen[node.exchange], true),
            "{what}: exchange {} twice",
            node.exchange
        );
        match node.trigger {
            Trigger::Start => assert_eq!(place, 0, "{what}: a second start"),
            Trigger::Done { parent } => assert!(
                parent < place,
                "{what}: node {place} before its parent {parent}"
            ),
            Trigger::Bytes { parent, at_byte } => {
                assert!(
                    parent < place,
                    "{what}: node {place} before its parent {parent}"
                );
                let length = replica.exchanges[graph.nodes[parent].exchange].body.len() as u64;
                assert!(
                    at_byte <= length,
                    "{what}: node {place} at byte {at_byte} of {length}"
                );
            }
        }
        if let Some(at) = node.layout_at() {
            let mut document = node;
            while let Some(parent) = document.parent()
                && (document.kind != Kind::Document || document == node)
            {
                document = &graph.nodes[parent];
            }
            let length = replica.exchanges[document.exchange].body.len() as u64;
            assert!(
                document.kind == Kind::Document && at <= length,
                "{what}: node {place} is laid out at byte {at} of {length}"
            );
        }
        assert!(
            node.before_load || !node.before_dom_content_loaded,
            "{what}: node {place} is waited for and is not"
        );
        let own =
            [WaitsFor::DomContentLoaded, WaitsFor::Load].map(|event| node.waits_for == Some(event));
        let above = node.parent().map_or([false; 2], |parent| waits[parent]);
        let [after_dom_content_loaded, after_load] = [0, 1].map(|event| own[event] || above[event]);
        waits.push([after_dom_content_loaded, after_load]);
        assert!(
            !(node.before_dom_content_loaded && (after_dom_content_loaded || after_load)),
            "{what}: node {place} is before and after DOMContentLoaded"
        );
        assert!(
            !(node.before_load && after_load),
            "{what}: node {place} is before and after load"
        );
        assert!(
            node.delay <= spdy_page::graph::MAX_DELAY,
            "{what}: node {place} after {:?}",
            node.delay
        );
        if node.blocks_parser_at.is_some() {
            let met = |node: &Node| matches!(node.trigger, Trigger::Bytes { .. });
            let mut named = node;
            while let Trigger::Done { parent } = named.trigger
                && graph.nodes[parent].is_redirect
            {
                named = &graph.nodes[parent];
            }
            assert!(
                met(named) && !node.is_redirect,
                "{what}: node {place} blocks a parser that did not meet it"
            );
        }
    }
    assert!(
        seen.iter().all(|&seen| seen),
        "{what}: exchanges without a node"
    );
    assert_eq!(graph.nodes[0].trigger, Trigger::Start, "{what}: no start");
}
