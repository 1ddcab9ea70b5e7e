//! Requests that wait for layout.

use std::time::Duration;

use spdy_page::graph::{Node, PageGraph, Trigger, WaitsFor};
use spdy_page::replica::Kind;

use crate::support::timeline::{
    at, compute, deferred_script, document, expected, image, node, run, run_hinted, style,
    sync_script,
};

/// The node, if layout up to `layout_at` requests it.
fn styled(layout_at: u64, mut node: Node) -> Node {
    let at_byte = layout_at;
    node.waits_for = Some(WaitsFor::Layout { at_byte });
    node
}

fn font_of(sheet: usize) -> Node {
    node(Kind::Font, Trigger::Done { parent: sheet })
}

#[test]
fn a_font_waits_for_its_sheet_and_the_body() {
    // The sheet has arrived at 191 ms, long after the body's start at 97 ms.
    let page = vec![document(), style(at(100)), styled(700, font_of(1))];
    assert_eq!(run(page, &[]), expected(&[0, 91, 191], 100.0, 291.0));
    // An image is named at 91 ms.
    let page = vec![document(), styled(700, image(at(100)))];
    assert_eq!(run(page, &[]), expected(&[0, 97], 100.0, 197.0));
}

#[test]
fn sheets_and_scripts_before_the_place_delay_layout_and_later_ones_do_not() {
    let page = |place| {
        vec![
            document(),
            style(at(100)),
            // It waits for the sheet and runs from 191 to 231 ms.
            compute(40, sync_script(place)),
            styled(500, font_of(1)),
        ]
    };
    assert_eq!(
        run(page(200), &[]),
        expected(&[0, 91, 92, 232], 232.0, 332.0)
    );
    assert_eq!(
        run(page(600), &[]),
        expected(&[0, 91, 96, 191], 236.0, 291.0)
    );
    // A second sheet arrives at 193 ms.
    let page = |place| {
        vec![
            document(),
            style(at(100)),
            style(at(place)),
            styled(500, font_of(1)),
        ]
    };
    assert_eq!(
        run(page(300), &[]),
        expected(&[0, 91, 93, 193], 100.0, 293.0)
    );
    assert_eq!(
        run(page(600), &[]),
        expected(&[0, 91, 96, 191], 100.0, 291.0)
    );
}

#[test]
fn layout_waits_for_the_main_thread_and_then_for_the_recorded_delay() {
    let delayed = |mut node: Node| {
        node.delay = Duration::from_millis(7);
        node
    };
    let page = vec![
        document(),
        compute(30, node(Kind::Script, at(100))),
        // At 195 ms the script runs until 221 ms.
        style(at(500)),
        delayed(styled(500, font_of(2))),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 91, 95, 228], 100.0, 328.0));
}

#[test]
fn what_hints_have_loaded_is_there_at_layout() {
    let nodes = vec![
        document(),
        compute(30, style(at(100))),
        styled(500, font_of(1)),
        styled(500, font_of(1)),
    ];
    let graph = PageGraph { nodes };
    // The fonts arrive at 190 ms, and are laid out at 221 ms.
    let loaded = run_hinted(&graph, &[], &[2, 3]);
    assert_eq!(loaded, expected(&[0, 91, 90, 90], 100.0, 221.0));
}

#[test]
fn failures_release_layout() {
    // The sheet fails: what only it names is never requested.
    let page = vec![
        document(),
        style(at(100)),
        styled(500, font_of(1)),
        styled(600, image(at(600))),
    ];
    assert_eq!(run(page, &[1]), expected(&[0, 91, -1, 191], 100.0, 291.0));
    let page = vec![document(), styled(900, image(at(100)))];
    assert_eq!(run(page, &[0]), expected(&[0, 99], 100.0, 199.0));
}

#[test]
fn an_import_of_an_inline_module_is_requested_when_the_parser_has_passed_the_module() {
    let import = Node {
        waits_for: Some(WaitsFor::Parser { at_byte: 600 }),
        ..deferred_script(at(600))
    };
    // The sheet arrives at 191 ms and the script at 195; the import does not wait for the other sheet.
    let page = vec![
        document(),
        style(at(100)),
        sync_script(500),
        style(at(550)),
        import,
    ];
    let times = [0, 91, 95, 96, 195];
    assert_eq!(run(page, &[]), expected(&times, 295.0, 295.0));
}

#[test]
fn dom_content_loaded_comes_after_what_an_inline_script_requests_in_time() {
    let requested = |by: WaitsFor, delay_ms| {
        let mut image = image(at(500));
        image.before_load = false;
        image.waits_for = Some(by);
        image.delay = Duration::from_millis(delay_ms);
        run(vec![document(), image], &[])
    };
    let at_byte = 500;
    let of_parser = |delay_ms| requested(WaitsFor::InlineScript { at_byte }, delay_ms);
    // The document has arrived at 100 ms, and its byte 500 at 95 ms.
    assert_eq!(of_parser(0), expected(&[0, 95], 100.0, 100.0));
    assert_eq!(of_parser(30), expected(&[0, 125], 125.0, 125.0));
    let later = requested(WaitsFor::Layout { at_byte }, 30);
    assert_eq!(later, expected(&[0, 125], 100.0, 100.0));
}
