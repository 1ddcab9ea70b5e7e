//! Small pages, and when each of their resources is requested.
//!
//! Every request takes 100 ms to its last byte, and every body is 1,000 bytes that arrive evenly in the last 10 ms.

use std::collections::BTreeMap;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::replica::Kind;
use spdy_sim::page_load::{PageLoad, priority_of};

pub(crate) const LATENCY: Duration = Duration::from_millis(90);
pub(crate) const TRANSFER: Duration = Duration::from_millis(10);
pub(crate) const BODY: u64 = 1_000;

pub(crate) fn node(kind: Kind, trigger: Trigger) -> Node {
    Node {
        exchange: 0,
        kind,
        trigger,
        delay: Duration::ZERO,
        is_redirect: false,
        blocks_parser_at: None,
        waits_for: None,
        blocks_scripts: false,
        before_dom_content_loaded: false,
        before_load: true,
        compute: Duration::ZERO,
        is_written: false,
        imports: Vec::new(),
    }
}

pub(crate) fn document() -> Node {
    Node {
        before_dom_content_loaded: true,
        ..node(Kind::Document, Trigger::Start)
    }
}

pub(crate) fn at(at_byte: u64) -> Trigger {
    Trigger::Bytes { parent: 0, at_byte }
}

pub(crate) fn image(trigger: Trigger) -> Node {
    node(Kind::Image, trigger)
}

pub(crate) fn sync_script(at_byte: u64) -> Node {
    Node {
        blocks_parser_at: Some(at_byte),
        before_dom_content_loaded: true,
        ..node(Kind::Script, at(at_byte))
    }
}

pub(crate) fn deferred_script(trigger: Trigger) -> Node {
    Node {
        before_dom_content_loaded: true,
        ..node(Kind::Script, trigger)
    }
}

pub(crate) fn style(trigger: Trigger) -> Node {
    Node {
        blocks_scripts: true,
        ..node(Kind::Stylesheet, trigger)
    }
}

pub(crate) fn compute(ms: u64, mut node: Node) -> Node {
    node.compute = Duration::from_millis(ms);
    node
}

/// Times in milliseconds at which each node was requested, then DOMContentLoaded, then load.
#[derive(Debug, PartialEq)]
pub(crate) struct Timeline {
    pub(crate) requested_ms: Vec<Option<f64>>,
    pub(crate) dom_content_loaded: f64,
    pub(crate) load: f64,
}

/// An event of a request in progress.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Head,
    Bytes(u64),
    Done,
    Failed,
}

pub(crate) fn run(nodes: Vec<Node>, failing: &[usize]) -> Timeline {
    run_graph(&PageGraph { nodes }, failing)
}

pub(crate) fn run_graph(graph: &PageGraph, failing: &[usize]) -> Timeline {
    run_hinted(graph, failing, &[])
}

/// With `hints` in the head of the document. A failing request fails only the first time.
pub(crate) fn run_hinted(graph: &PageGraph, failing: &[usize], hints: &[usize]) -> Timeline {
    let mut failing = failing.to_vec();
    let mut page = PageLoad::new(graph);
    page.hint(hints.iter().copied());
    let mut requested_ms = vec![None; graph.nodes.len()];
    let mut steps: BTreeMap<(Instant, usize), (usize, Step)> = BTreeMap::new();
    page.start(Instant::ZERO);
    loop {
        while let Some(request) = page.poll_request() {
            let again = hints.contains(&request.node) && requested_ms[request.node].is_some();
            assert!(
                requested_ms[request.node].is_none() || again,
                "node {} requested twice",
                request.node
            );
            assert_eq!(
                request.priority,
                priority_of(graph.nodes[request.node].kind)
            );
            requested_ms[request.node] = Some(request.needed.as_millis_f64());
            let first = request.needed + LATENCY;
            for tenth in 1..=10 {
                let step = (request.node, Step::Bytes(BODY / 10 * tenth));
                let when = first + TRANSFER / 10 * u32::try_from(tenth).unwrap();
                let count = steps.len();
                steps.insert((when, 1_000 * request.node + count), step);
            }
            steps.insert((first, 0), (request.node, Step::Head));
            let end = match failing.iter().position(|&node| node == request.node) {
                Some(at) => {
                    failing.remove(at);
                    Step::Failed
                }
                None => Step::Done,
            };
            steps.insert(
                (first + TRANSFER, usize::MAX - request.node),
                (request.node, end),
            );
        }
        let next_step = steps.first_key_value().map(|((when, _), _)| *when);
        match (next_step, page.poll_timeout()) {
            (None, None) => break,
            (step, Some(due)) if step.is_none_or(|step| due <= step) => page.handle_timeout(due),
            _ => {
                let ((now, _), (node, step)) = steps.pop_first().unwrap();
                match step {
                    Step::Head => page.handle_head(now, node),
                    Step::Bytes(total) => page.handle_bytes(now, node, total),
                    Step::Done => page.handle_done(now, node),
                    Step::Failed => page.handle_failed(now, node),
                }
            }
        }
    }
    assert!(page.is_finished(), "not settled: {:?}", page.unsettled());
    let ms = |instant: Option<Instant>| instant.unwrap().as_millis_f64();
    Timeline {
        requested_ms,
        dom_content_loaded: ms(page.dom_content_loaded()),
        load: ms(page.load()),
    }
}

/// `requested_ms` in whole milliseconds; -1 for a node that was never requested.
pub(crate) fn expected(requested_ms: &[i32], dom_content_loaded: f64, load: f64) -> Timeline {
    let requested_ms = requested_ms
        .iter()
        .map(|&ms| (ms >= 0).then(|| f64::from(ms)))
        .collect();
    Timeline {
        requested_ms,
        dom_content_loaded,
        load,
    }
}
