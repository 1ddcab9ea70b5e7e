//! A browser's order of requests, as tables of small pages.
//!
//! Every request takes 100 ms from asking to its last byte, and every body is 1,000 bytes that arrive
//! evenly in the last 10 ms, so a table's times can be worked out by hand.

use std::collections::BTreeMap;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::replica::Kind;
use spdy_sim::page_load::{PageLoad, priority_of};

const LATENCY: Duration = Duration::from_millis(90);
const TRANSFER: Duration = Duration::from_millis(10);
const BODY: u64 = 1_000;

fn node(kind: Kind, trigger: Trigger) -> Node {
    Node {
        exchange: 0,
        kind,
        trigger,
        delay: Duration::ZERO,
        is_redirect: false,
        blocks_parser_at: None,
        blocks_scripts: false,
        before_dom_content_loaded: false,
        before_load: true,
        compute: Duration::ZERO,
    }
}

fn document() -> Node {
    Node {
        before_dom_content_loaded: true,
        ..node(Kind::Document, Trigger::Start)
    }
}

fn at(at_byte: u64) -> Trigger {
    Trigger::Bytes { parent: 0, at_byte }
}

fn image(trigger: Trigger) -> Node {
    node(Kind::Image, trigger)
}

fn sync_script(at_byte: u64) -> Node {
    Node {
        blocks_parser_at: Some(at_byte),
        before_dom_content_loaded: true,
        ..node(Kind::Script, at(at_byte))
    }
}

fn deferred_script(trigger: Trigger) -> Node {
    Node {
        before_dom_content_loaded: true,
        ..node(Kind::Script, trigger)
    }
}

fn style(trigger: Trigger) -> Node {
    Node {
        blocks_scripts: true,
        ..node(Kind::Stylesheet, trigger)
    }
}

fn compute(ms: u64, mut node: Node) -> Node {
    node.compute = Duration::from_millis(ms);
    node
}

/// When each node was requested, then DOMContentLoaded, then load; in milliseconds.
#[derive(Debug, PartialEq)]
struct Timeline {
    requested_ms: Vec<Option<f64>>,
    dom_content_loaded: f64,
    load: f64,
}

/// What happens to a request that is on its way.
#[derive(Clone, Copy)]
enum Step {
    Head,
    Bytes(u64),
    Done,
    Failed,
}

fn run(nodes: Vec<Node>, failing: &[usize]) -> Timeline {
    run_graph(&PageGraph { nodes }, failing)
}

fn run_graph(graph: &PageGraph, failing: &[usize]) -> Timeline {
    run_hinted(graph, failing, &[])
}

/// With `hints` in the head of the document. A request that fails, fails the first time only.
fn run_hinted(graph: &PageGraph, failing: &[usize], hints: &[usize]) -> Timeline {
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
            requested_ms[request.node] = Some(request.wanted.as_millis_f64());
            let first = request.wanted + LATENCY;
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
fn expected(requested_ms: &[i32], dom_content_loaded: f64, load: f64) -> Timeline {
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

#[test]
fn an_image_is_requested_when_its_byte_arrives_and_load_waits_for_it() {
    let page = vec![document(), image(at(500)), image(at(501)), image(at(0))];
    assert_eq!(run(page, &[]), expected(&[0, 95, 96, 91], 100.0, 196.0));
}

#[test]
fn a_document_alone_is_ready_with_its_last_byte() {
    assert_eq!(run(vec![document()], &[]), expected(&[0], 100.0, 100.0));
}

#[test]
fn an_offset_past_the_end_is_reached_with_the_end() {
    assert_eq!(
        run(vec![document(), image(at(5_000))], &[]),
        expected(&[0, 100], 100.0, 200.0)
    );
}

#[test]
fn a_synchronous_script_holds_the_parser_but_not_the_preload_scanner() {
    // The script at byte 100 arrives at 191; the image behind it was still requested at 99.
    let page = vec![document(), sync_script(100), image(at(900))];
    assert_eq!(run(page, &[]), expected(&[0, 91, 99], 191.0, 199.0));
}

#[test]
fn synchronous_scripts_run_in_page_order() {
    // Both here at 191 and 192; 50 ms and 30 ms on the one main thread.
    let page = vec![
        document(),
        compute(50, sync_script(100)),
        compute(30, sync_script(200)),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 91, 92], 271.0, 271.0));
}

#[test]
fn resources_of_a_script_are_requested_after_it_ran() {
    let page = vec![
        document(),
        compute(50, sync_script(100)),
        image(Trigger::Done { parent: 1 }),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 91, 241], 241.0, 341.0));
}

#[test]
fn a_style_sheet_holds_the_scripts_after_it_and_not_those_before() {
    // Sheet at 150: here at 192, 100 ms of work, in effect at 292. The script before it runs at 191.
    let page = vec![
        document(),
        sync_script(100),
        compute(100, style(at(150))),
        sync_script(160),
        image(Trigger::Done { parent: 1 }),
        image(Trigger::Done { parent: 3 }),
    ];
    assert_eq!(
        run(page, &[]),
        expected(&[0, 91, 92, 92, 191, 292], 292.0, 392.0)
    );
}

#[test]
fn a_style_sheet_alone_does_not_hold_dom_content_loaded() {
    let page = vec![document(), style(at(500))];
    assert_eq!(run(page, &[]), expected(&[0, 95], 100.0, 195.0));
}

#[test]
fn resources_of_a_style_sheet_are_requested_once_it_applies() {
    let page = vec![
        document(),
        compute(5, style(at(500))),
        node(Kind::Font, Trigger::Done { parent: 1 }),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 95, 200], 100.0, 300.0));
}

#[test]
fn deferred_scripts_run_between_parsing_and_dom_content_loaded() {
    // The second one is here first (99 + 100 against 91 + 20 + 100), and waits for the first.
    let mut slow = deferred_script(at(100));
    slow.delay = Duration::from_millis(20);
    let page = vec![
        document(),
        slow,
        deferred_script(at(900)),
        image(Trigger::Done { parent: 2 }),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 111, 99, 211], 211.0, 311.0));
}

#[test]
fn an_asynchronous_script_runs_when_it_is_there_and_holds_load_alone() {
    let slow_style = compute(500, style(at(100)));
    let page = vec![
        document(),
        slow_style,
        node(Kind::Script, at(200)),
        image(Trigger::Done { parent: 2 }),
    ];
    // The sheet keeps the main thread from 191 to 691: the script, here at 192, must wait for that thread,
    // though not for the sheet itself.
    assert_eq!(run(page, &[]), expected(&[0, 91, 92, 691], 100.0, 791.0));
}

#[test]
fn resources_after_load_are_still_fetched() {
    let beacon = Node {
        before_load: false,
        ..image(at(500))
    };
    let page = vec![document(), beacon];
    assert_eq!(run(page, &[]), expected(&[0, 95], 100.0, 100.0));
}

#[test]
fn a_redirect_is_followed_before_anything_of_the_page() {
    let target = Node {
        trigger: Trigger::Done { parent: 0 },
        ..document()
    };
    let page = vec![
        document(),
        target,
        image(Trigger::Bytes {
            parent: 1,
            at_byte: 300,
        }),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 100, 193], 200.0, 293.0));
}

#[test]
fn a_frame_has_a_parser_of_its_own() {
    let frame = Node {
        before_dom_content_loaded: false,
        ..node(Kind::Document, at(500))
    };
    let inside = |at_byte| Trigger::Bytes { parent: 1, at_byte };
    let script = Node {
        blocks_parser_at: Some(500),
        ..node(Kind::Script, inside(500))
    };
    let page = vec![document(), frame, script, image(inside(1_000))];
    assert_eq!(run(page, &[]), expected(&[0, 95, 190, 195], 100.0, 295.0));
}

/// The import stands behind the script in the graph, and before it in the page.
#[test]
fn a_script_waits_for_what_the_sheet_before_it_imports() {
    // Sheet: 91 to 191; what it imports: to 291. The script is here at 192.
    let page = vec![
        document(),
        style(at(100)),
        sync_script(200),
        style(Trigger::Done { parent: 1 }),
        image(Trigger::Done { parent: 2 }),
    ];
    assert_eq!(
        run(page, &[]),
        expected(&[0, 91, 92, 191, 291], 291.0, 391.0)
    );
}

#[test]
fn a_script_in_a_frame_does_not_wait_for_the_sheets_of_the_page_around_it() {
    let frame = Node {
        before_dom_content_loaded: false,
        ..node(Kind::Document, at(500))
    };
    let inside = |at_byte| Trigger::Bytes { parent: 1, at_byte };
    let script = Node {
        blocks_parser_at: Some(500),
        ..node(Kind::Script, inside(500))
    };
    let slow_sheet = Node {
        delay: Duration::from_millis(400),
        ..style(at(100))
    };
    let page = vec![
        document(),
        frame,
        script,
        slow_sheet,
        image(Trigger::Done { parent: 2 }),
    ];
    let (first, second) = (page.clone(), vec![0, 3, 1, 2, 4]);
    assert_eq!(
        run(first, &[]),
        expected(&[0, 95, 190, 491, 290], 100.0, 591.0)
    );
    // In whatever order the graph has them.
    let place = |node: usize| second.iter().position(|&old| old == node).unwrap();
    let moved = second.iter().map(|&old| Node {
        trigger: match page[old].trigger {
            Trigger::Bytes { parent, at_byte } => Trigger::Bytes {
                parent: place(parent),
                at_byte,
            },
            Trigger::Done { parent } => Trigger::Done {
                parent: place(parent),
            },
            Trigger::Start => Trigger::Start,
        },
        ..page[old].clone()
    });
    assert_eq!(
        run(moved.collect(), &[]),
        expected(&[0, 491, 95, 190, 290], 100.0, 591.0)
    );
}

#[test]
fn a_redirected_script_blocks_the_parser_without_waiting_itself() {
    // The first script is here at 191. The redirect, at 192, is followed at once; what it leads to is here at 292.
    let target = Node {
        trigger: Trigger::Done { parent: 3 },
        ..sync_script(200)
    };
    let page = vec![
        document(),
        compute(150, sync_script(100)),
        target,
        Node {
            is_redirect: true,
            ..node(Kind::Script, at(200))
        },
        image(Trigger::Done { parent: 2 }),
        sync_script(300),
    ];
    let page_load = run(page, &[]);
    assert_eq!(page_load.dom_content_loaded, 341.0);
    assert_eq!(
        page_load.requested_ms[2..],
        [192, 92, 341, 93].map(|ms| Some(f64::from(ms)))
    );
}

#[test]
fn a_failed_chain_of_any_length_is_given_up() {
    let chain = (0..200_000).map(|parent| image(Trigger::Done { parent }));
    let page: Vec<_> = std::iter::once(document()).chain(chain).collect();
    let graph = PageGraph { nodes: page };
    let mut load = PageLoad::new(&graph);
    load.start(Instant::ZERO);
    load.handle_failed(Instant::ZERO, 0);
    assert!(load.is_finished());
}

#[test]
fn a_failed_script_lets_the_parser_go_on_and_names_nothing() {
    let page = vec![
        document(),
        sync_script(100),
        image(at(900)),
        deferred_script(Trigger::Done { parent: 1 }),
        image(Trigger::Done { parent: 3 }),
    ];
    assert_eq!(
        run(page, &[1]),
        expected(&[0, 91, 99, -1, -1], 191.0, 199.0)
    );
}

#[test]
fn a_failed_document_ends_the_load() {
    // Bytes came until it failed, so the image was named; the script that would have come later was not.
    let page = vec![
        document(),
        image(at(500)),
        image(Trigger::Done { parent: 0 }),
    ];
    assert_eq!(run(page, &[0]), expected(&[0, 95, -1], 100.0, 195.0));
}

#[test]
fn nodes_that_nothing_leads_to_do_not_hold_the_load_up() {
    let page = vec![
        document(),
        image(Trigger::Done { parent: 2 }),
        deferred_script(Trigger::Done { parent: 1 }),
        image(Trigger::Done { parent: 99 }),
    ];
    assert_eq!(run(page, &[]), expected(&[0, -1, -1, -1], 100.0, 100.0));
}

#[test]
fn work_on_the_main_thread_is_done_one_after_the_other() {
    let page = vec![
        document(),
        compute(40, image(at(100))),
        compute(40, image(at(100))),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 91, 91], 100.0, 271.0));
}

#[test]
fn priorities_are_those_of_chromium() {
    let kinds = [
        (Kind::Document, 0),
        (Kind::Stylesheet, 1),
        (Kind::Script, 2),
        (Kind::Font, 2),
        (Kind::Fetch, 2),
        (Kind::Media, 3),
        (Kind::Image, 4),
        (Kind::Other, 4),
    ];
    for (kind, level) in kinds {
        assert_eq!(priority_of(kind).level(), level, "{kind:?}");
    }
}

mod laws {
    use proptest::prelude::*;

    use super::*;

    fn any_kind() -> impl Strategy<Value = Kind> {
        use Kind::{Document, Fetch, Font, Image, Media, Other, Script, Stylesheet};
        prop::sample::select(vec![
            Document, Stylesheet, Script, Script, Script, Font, Image, Media, Fetch, Other,
        ])
    }

    fn any_node(index: usize) -> impl Strategy<Value = Node> {
        let trigger = (0..index, 0..BODY * 2, any::<bool>()).prop_map(
            |(parent, at_byte, bytes)| match bytes {
                true => Trigger::Bytes { parent, at_byte },
                false => Trigger::Done { parent },
            },
        );
        (
            any_kind(),
            trigger,
            0..20_u64,
            0..20_u64,
            any::<[bool; 5]>(),
        )
            .prop_map(|(kind, trigger, delay, work, flags)| {
                let [
                    blocks_parser,
                    blocks_scripts,
                    before_dom_content_loaded,
                    before_load,
                    is_redirect,
                ] = flags;
                let offset = match trigger {
                    Trigger::Bytes { at_byte, .. } if blocks_parser && kind == Kind::Script => {
                        Some(at_byte)
                    }
                    _ => None,
                };
                Node {
                    delay: Duration::from_millis(delay),
                    is_redirect,
                    blocks_parser_at: offset,
                    blocks_scripts: blocks_scripts && kind == Kind::Stylesheet,
                    before_dom_content_loaded,
                    before_load,
                    ..compute(work, node(kind, trigger))
                }
            })
    }

    fn any_page() -> impl Strategy<Value = Vec<Node>> {
        (2..30_usize).prop_flat_map(|len| {
            let rest: Vec<_> = (1..len).map(any_node).collect();
            rest.prop_map(|rest| std::iter::once(document()).chain(rest).collect())
        })
    }

    proptest! {
        /// Whatever the graph: the load ends, everything is requested once, and DOMContentLoaded comes first.
        #[test]
        fn every_page_ends(page in any_page(), failing in prop::collection::vec(0..30_usize, 0..4)) {
            let everything_loads = failing.is_empty();
            let timeline = run(page, &failing);
            prop_assert!(timeline.dom_content_loaded <= timeline.load);
            if everything_loads {
                prop_assert!(timeline.requested_ms.iter().all(Option::is_some));
            }
        }
    }
}

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
    // Sheet at 95 ms, here at 195; font from then on, or from the document's head at 90 ms and long there.
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
    assert_eq!((request.node, request.wanted), (2, early));
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
    // The page needs the script at 99 ms, and the hint requested it at 90; it runs when it has arrived.
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
