//! Scripts that a synchronous script writes into the document.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::{Node, PageGraph};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::soundness::assert_lawful;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A page whose script 1 requests script 2 with `priority`, which requests script 3. Script 2 ends at 400 ms, script 3 at 600 ms.
fn page(tag: &str, priority: Option<&str>) -> Replica {
    let exchange = |path: &str, kind, body: &str, started| {
        let url = format!("https://a.test/{path}").parse().unwrap();
        let mut exchange = Exchange::synthetic(url, kind, "text/plain", body.to_owned());
        exchange.started = Some(ms(started));
        (exchange.wait, exchange.receive) = (Some(ms(90)), Some(ms(10)));
        exchange.observed.compute = (kind != Kind::Document).then_some(ms(1));
        exchange
    };
    let by = |index, priority: Option<&str>, mut exchange: Exchange| {
        exchange.initiator = Initiator::Resource {
            index,
            at_byte: None,
        };
        exchange.observed.priority = priority.map(str::to_owned);
        exchange
    };
    let exchanges = vec![
        exchange("", Kind::Document, tag, 0),
        by(0, Some("High"), exchange("1.js", Kind::Script, "x", 100)),
        by(1, priority, exchange("2.js", Kind::Script, "x", 300)),
        by(2, Some("High"), exchange("3.js", Kind::Script, "x", 500)),
    ];
    Replica {
        start: 0,
        exchanges,
        dom_content_loaded: Some(ms(2_000)),
        load: Some(ms(3_000)),
        ..builtin::flags()
    }
}

/// Whether the nodes of scripts 2 and 3 are written, and DOMContentLoaded and load wait for them.
fn of_scripts(replica: &Replica) -> [[bool; 3]; 2] {
    let graph = PageGraph::of(replica);
    assert_lawful(replica, &graph, "page with scripts of scripts");
    [2, 3].map(|index| {
        let mut nodes = graph.nodes.iter();
        let node: &Node = nodes.find(|node| node.exchange == index).unwrap();
        [
            node.is_written,
            node.before_dom_content_loaded,
            node.before_load,
        ]
    })
}

const SYNC: &str = "<script src=1.js></script><p>text";

#[test]
fn a_script_of_a_synchronous_script_is_written_if_it_is_as_urgent() {
    let written = [true; 3];
    let inserted = [false, false, true];
    assert_eq!(of_scripts(&page(SYNC, Some("High"))), [written; 2]);
    assert_eq!(of_scripts(&page(SYNC, Some("Low"))), [inserted; 2]);
    assert_eq!(of_scripts(&page(SYNC, None)), [inserted; 2]);
    let asynchronous = "<script async src=1.js></script><p>text";
    assert_eq!(of_scripts(&page(asynchronous, Some("High"))), [inserted; 2]);
}

#[test]
fn a_script_that_ended_after_dom_content_loaded_was_not_written() {
    let mut replica = page(SYNC, Some("High"));
    replica.dom_content_loaded = Some(ms(500));
    let [second, third] = of_scripts(&replica);
    assert!(second[0], "it ended at 400 ms");
    assert!(!third[0]);
}
