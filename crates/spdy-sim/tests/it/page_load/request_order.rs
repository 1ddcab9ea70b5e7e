//! A browser's order of requests, for small pages.
//!
//! The times of a table can be calculated by hand: see `support/timeline.rs`.

use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::graph::{Node, PageGraph, Trigger, WaitsFor};
use spdy_page::replica::Kind;
use spdy_sim::page_load::{PageLoad, priority_of};

use crate::support::timeline::{
    at, compute, deferred_script, document, expected, image, node, run, style, sync_script,
};

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
    // They arrive at 191 and 192; 50 ms and 30 ms on the one main thread.
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
    // The style sheet at 150 arrives at 192, takes 100 ms, and has effect at 292. The script before it runs at 191.
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
fn the_parser_waits_for_what_a_synchronous_script_writes() {
    let written = |parent| Node {
        is_written: true,
        ..deferred_script(Trigger::Done { parent })
    };
    // The script at 200 arrives at 192, and runs when both written scripts have.
    let page = vec![
        document(),
        sync_script(100),
        written(1),
        sync_script(200),
        image(Trigger::Done { parent: 3 }),
        written(2),
    ];
    assert_eq!(
        run(page, &[]),
        expected(&[0, 91, 191, 92, 391, 291], 391.0, 491.0)
    );
}

#[test]
fn deferred_scripts_run_between_parsing_and_dom_content_loaded() {
    // The second script arrives first (99 + 100 against 91 + 20 + 100), and waits for the first.
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
fn an_async_script_runs_on_arrival_and_delays_only_load() {
    let slow_style = compute(500, style(at(100)));
    let page = vec![
        document(),
        slow_style,
        node(Kind::Script, at(200)),
        image(Trigger::Done { parent: 2 }),
    ];
    // The style sheet occupies the main thread from 191 to 691. The script, which arrives at 192, waits for that thread, though not
    // for the style sheet itself.
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
fn what_a_handler_of_dom_content_loaded_requests_delays_load() {
    let page = vec![
        document(),
        sync_script(500),
        Node {
            waits_for: Some(WaitsFor::DomContentLoaded),
            delay: Duration::from_millis(5),
            ..image(Trigger::Done { parent: 1 })
        },
        deferred_script(at(900)),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 95, 204, 99], 199.0, 304.0));
}

#[test]
fn an_icon_is_requested_after_the_load_event() {
    let icon = |delay| Node {
        waits_for: Some(WaitsFor::Load),
        before_load: false,
        delay: Duration::from_millis(delay),
        ..image(at(500))
    };
    let page = vec![document(), icon(0), image(at(900)), icon(5)];
    assert_eq!(run(page, &[]), expected(&[0, 199, 99, 204], 100.0, 199.0));
}

#[test]
fn a_delayed_load_event_delays_what_follows_it() {
    let icon = Node {
        waits_for: Some(WaitsFor::Load),
        before_load: false,
        ..image(at(500))
    };
    let graph = PageGraph {
        nodes: vec![document(), icon],
    };
    let at = |ms| Instant::ZERO + Duration::from_millis(ms);
    let mut page = PageLoad::new(&graph);
    page.delay_load(Duration::from_millis(40));
    page.start(at(0));
    assert_eq!(page.poll_request().map(|request| request.node), Some(0));
    page.handle_done(at(100), 0);
    assert_eq!(page.dom_content_loaded(), Some(at(100)));
    assert_eq!((page.load(), page.poll_timeout()), (None, Some(at(140))));
    assert!(page.poll_request().is_none());
    page.handle_timeout(at(140));
    assert_eq!(page.load(), Some(at(140)));
    assert_eq!(page.poll_request().map(|request| request.node), Some(1));
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

/// The import is behind the script in the graph, and before it in the page.
#[test]
fn a_script_waits_for_imports_of_the_style_sheet_before_it() {
    // Style sheet: 91 to 191; its import: to 291. The script arrives at 192.
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
    // For any order in the graph.
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
    // The first script arrives at 191. The redirect, at 192, is followed at once; its target arrives at 292.
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
fn a_failed_chain_of_any_length_is_settled() {
    let chain = (0..200_000).map(|parent| image(Trigger::Done { parent }));
    let page: Vec<_> = std::iter::once(document()).chain(chain).collect();
    let graph = PageGraph { nodes: page };
    let mut load = PageLoad::new(&graph);
    load.start(Instant::ZERO);
    load.handle_failed(Instant::ZERO, 0);
    assert!(load.is_finished());
}

#[test]
fn a_failed_script_unblocks_the_parser_and_requests_nothing() {
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
    // Bytes arrived until it failed, so the image was named; the script after them was not.
    let page = vec![
        document(),
        image(at(500)),
        image(Trigger::Done { parent: 0 }),
    ];
    assert_eq!(run(page, &[0]), expected(&[0, 95, -1], 100.0, 195.0));
}

#[test]
fn unreachable_nodes_do_not_delay_the_load() {
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
