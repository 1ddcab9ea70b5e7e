//! Requests for hinted resources: hints in the head of a document, and early hints.

use spdy_clock::Instant;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::replica::Kind;
use spdy_sim::page_load::PageLoad;

use crate::support::timeline::{
    LATENCY, at, compute, document, expected, image, node, run_graph, run_hinted, style,
    sync_script,
};

/// A style sheet at byte 500 that names a font, and the font.
fn sheet_and_font() -> PageGraph {
    let font = node(Kind::Font, Trigger::Done { parent: 1 });
    PageGraph {
        nodes: vec![document(), style(at(500)), font],
    }
}

#[test]
fn hinted_resources_are_requested_once_with_the_document_head() {
    let graph = sheet_and_font();
    // The style sheet at 95 ms arrives at 195. The font is requested then, or at 90 ms from the document's head and has then arrived.
    let plain = expected(&[0, 95, 195], 100.0, 295.0);
    assert_eq!(run_graph(&graph, &[]), plain);
    assert_eq!(
        run_hinted(&graph, &[], &[2]),
        expected(&[0, 95, 90], 100.0, 195.0)
    );
    assert_eq!(
        run_hinted(&graph, &[], &[1, 2]),
        expected(&[0, 90, 90], 100.0, 190.0)
    );
}

#[test]
fn early_hints_are_requested_immediately_and_only_once() {
    let graph = sheet_and_font();
    let mut page = PageLoad::new(&graph);
    page.start(Instant::ZERO);
    let next_node = |page: &mut PageLoad<'_>| page.poll_request().map(|request| request.node);
    assert_eq!(next_node(&mut page), Some(0));
    let early = Instant::ZERO + LATENCY / 2;
    page.handle_early_hints(early, 0, [2, 0]);
    let request = page.poll_request().expect("what was hinted at");
    assert_eq!((request.node, request.needed), (2, early));
    page.handle_head(Instant::ZERO + LATENCY, 0);
    assert_eq!(next_node(&mut page), None);
    // Early hints in the response of a sheet do not concern the page.
    page.handle_bytes(Instant::ZERO + LATENCY, 0, 500);
    assert_eq!(next_node(&mut page), Some(1));
    page.handle_early_hints(Instant::ZERO + LATENCY, 1, [2]);
    assert_eq!(next_node(&mut page), None);
}

#[test]
fn an_in_flight_hinted_resource_is_not_requested_again() {
    // The hint requests the script at 90 ms, and the page needs it at 99 ms; it runs when it has arrived.
    let graph = PageGraph {
        nodes: vec![document(), compute(50, sync_script(900))],
    };
    let timeline = run_hinted(&graph, &[], &[1]);
    assert_eq!(timeline, expected(&[0, 90], 240.0, 240.0));
}

#[test]
fn a_failed_hint_is_requested_again_when_needed() {
    let graph = sheet_and_font();
    let timeline = run_hinted(&graph, &[2], &[2]);
    assert_eq!(timeline, expected(&[0, 95, 195], 100.0, 295.0));
}

#[test]
fn documents_and_redirects_are_never_hinted() {
    let redirect = Node {
        is_redirect: true,
        ..image(at(1_000))
    };
    let graph = PageGraph {
        nodes: vec![document(), node(Kind::Document, at(1_000)), redirect],
    };
    assert_eq!(run_hinted(&graph, &[], &[0, 1, 2]), run_graph(&graph, &[]));
}
