//! Modules and their static imports.

use spdy_page::graph::{Node, Trigger};
use spdy_page::replica::Kind;

use crate::support::timeline::{
    BODY, at, compute, deferred_script, document, expected, image, node, run, sync_script,
};

/// Found at the end of the text of its importer.
fn import_by(parent: usize) -> Trigger {
    let at_byte = BODY;
    Trigger::Bytes { parent, at_byte }
}

fn imports<const COUNT: usize>(imports: [usize; COUNT], mut node: Node) -> Node {
    node.imports = imports.into();
    node
}

/// A module that takes 10 ms.
fn module(trigger: Trigger) -> Node {
    compute(10, deferred_script(trigger))
}

/// A module of a dynamic import.
fn dynamic(trigger: Trigger) -> Node {
    compute(10, node(Kind::Script, trigger))
}

fn by(parent: usize) -> Trigger {
    Trigger::Done { parent }
}

#[test]
fn a_module_runs_after_its_imports_and_only_then_requests_more() {
    let page = vec![
        document(),
        imports([2], module(at(500))),
        imports([3], module(import_by(1))),
        module(import_by(2)),
        image(by(1)),
        image(by(3)),
    ];
    // All have arrived at 395 ms. The last import runs first.
    let times = [0, 95, 195, 295, 425, 405];
    assert_eq!(run(page, &[]), expected(&times, 425.0, 525.0));
}

#[test]
fn a_later_module_waits_for_all_imports_of_the_one_before_it() {
    let page = vec![
        document(),
        imports([3], module(at(500))),
        module(at(600)),
        module(import_by(1)),
        image(by(2)),
    ];
    let times = [0, 95, 96, 195, 325];
    assert_eq!(run(page, &[]), expected(&times, 325.0, 425.0));
}

#[test]
fn a_dynamic_import_runs_when_all_its_imports_have_arrived() {
    let page = vec![
        document(),
        deferred_script(at(500)),
        imports([3, 4], dynamic(by(1))),
        dynamic(import_by(2)),
        imports([5], dynamic(import_by(2))),
        dynamic(import_by(4)),
        image(by(3)),
        image(by(2)),
    ];
    // The first import has arrived at 395 ms, the last one at 495.
    let times = [0, 95, 195, 295, 295, 395, 505, 535];
    assert_eq!(run(page, &[]), expected(&times, 195.0, 635.0));
}

#[test]
fn a_module_waits_for_imports_that_others_have_requested() {
    // The document preloads one, and the other module imports the second.
    let page = vec![
        document(),
        imports([3, 4], module(at(500))),
        imports([4], module(at(500))),
        dynamic(at(1000)),
        module(import_by(2)),
        image(by(1)),
    ];
    let times = [0, 95, 95, 100, 195, 315];
    assert_eq!(run(page, &[]), expected(&times, 325.0, 415.0));
}

#[test]
fn an_import_by_a_redirect_counts_when_its_target_has_run() {
    let redirect = Node {
        is_redirect: true,
        ..module(import_by(1))
    };
    let page = vec![
        document(),
        imports([3], deferred_script(at(500))),
        redirect,
        module(by(2)),
        image(by(1)),
    ];
    let times = [0, 95, 195, 295, 405];
    assert_eq!(run(page, &[]), expected(&times, 405.0, 505.0));
}

#[test]
fn a_failed_import_delays_nothing_after_it() {
    let page = vec![
        document(),
        imports([2, 3], deferred_script(at(500))),
        module(import_by(1)),
        module(import_by(1)),
        image(by(1)),
    ];
    let times = [0, 95, 195, 195, 305];
    assert_eq!(run(page, &[2]), expected(&times, 305.0, 405.0));
}

#[test]
fn a_failed_module_lets_what_it_imports_run() {
    let page = vec![
        document(),
        imports([2], deferred_script(at(500))),
        module(at(600)),
        image(by(2)),
    ];
    assert_eq!(run(page, &[1]), expected(&[0, 95, 96, 206], 206.0, 306.0));
}

#[test]
fn a_module_that_fails_while_its_import_runs_does_not_run() {
    let page = vec![
        document(),
        imports([2], node(Kind::Script, at(500))),
        dynamic(at(500)),
        image(by(1)),
    ];
    // The first fails at 195 ms, and the other runs until 205.
    assert_eq!(run(page, &[1]), expected(&[0, 95, 95, -1], 100.0, 205.0));
}

#[test]
fn a_cycle_of_imports_is_cut() {
    let page = vec![
        document(),
        imports([2], module(at(500))),
        imports([1, 2], module(import_by(1))),
        image(by(1)),
    ];
    let times = [0, 95, 195, 315];
    assert_eq!(run(page, &[]), expected(&times, 315.0, 415.0));
}

#[test]
fn classic_scripts_wait_for_no_import() {
    // As inferred for a module of a document whose text is not recorded.
    let page = vec![
        document(),
        imports([2], sync_script(500)),
        deferred_script(import_by(1)),
        image(by(1)),
    ];
    assert_eq!(run(page, &[]), expected(&[0, 95, 195, 195], 295.0, 295.0));
}

#[test]
fn nodes_without_a_chain_of_triggers_are_no_imports() {
    let page = vec![
        document(),
        imports([2, 3], module(at(500))),
        module(by(usize::MAX)),
        module(import_by(2)),
        image(by(1)),
    ];
    assert_eq!(
        run(page, &[]),
        expected(&[0, 95, -1, -1, 205], 205.0, 305.0)
    );
}
