//! Laws of the order of requests for any page.

use std::time::Duration;

use proptest::prelude::*;
use spdy_page::graph::{Node, Trigger, WaitsFor};
use spdy_page::replica::Kind;

use crate::support::timeline::{BODY, compute, document, node, run};

fn any_kind() -> impl Strategy<Value = Kind> {
    use Kind::{Document, Fetch, Font, Image, Media, Other, Script, Stylesheet};
    prop::sample::select(vec![
        Document, Stylesheet, Script, Script, Script, Font, Image, Media, Fetch, Other,
    ])
}

fn any_wait() -> impl Strategy<Value = WaitsFor> {
    (0..BODY * 2).prop_flat_map(|at_byte| {
        prop::sample::select(vec![
            WaitsFor::Layout { at_byte },
            WaitsFor::Parser { at_byte },
            WaitsFor::InlineScript { at_byte },
        ])
    })
}

fn any_node(index: usize) -> impl Strategy<Value = Node> {
    let trigger =
        (0..index, 0..BODY * 2, any::<bool>()).prop_map(|(parent, at_byte, bytes)| match bytes {
            true => Trigger::Bytes { parent, at_byte },
            false => Trigger::Done { parent },
        });
    (
        any_kind(),
        trigger,
        0..20_u64,
        0..20_u64,
        any::<[bool; 5]>(),
        prop::option::of(any_wait()),
        prop::collection::vec(0..30_usize, 0..3),
    )
        .prop_map(|(kind, trigger, delay, work, flags, waits_for, imports)| {
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
            let is_written = offset.is_none() && blocks_parser && kind == Kind::Script;
            Node {
                // No parser waits for what layout requests, not even behind a redirect.
                waits_for: waits_for.filter(|_| {
                    let is_waiting = matches!(kind, Kind::Font | Kind::Image | Kind::Script);
                    is_waiting && offset.is_none() && !is_written && !is_redirect
                }),
                delay: Duration::from_millis(delay),
                is_redirect,
                blocks_parser_at: offset,
                is_written,
                blocks_scripts: blocks_scripts && kind == Kind::Stylesheet,
                before_dom_content_loaded,
                before_load,
                imports,
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
