//! What the load event waits for, by the times of a recording.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::PageGraph;
use spdy_page::replica::{Exchange, Kind, Replica};

/// Whether the load event at 300 ms waits for a script that is requested at 299 ms and ends at `end` ms.
fn waits(end: u64, priority: Option<&str>) -> bool {
    let ms = Duration::from_millis;
    let url = |path: &str| format!("https://a.test/{path}").parse().unwrap();
    let document = Exchange::synthetic(url(""), Kind::Document, "text/html", "<p>text");
    let mut script = Exchange::synthetic(url("late.js"), Kind::Script, "text/javascript", "x");
    script.started = Some(ms(299));
    script.receive = Some(ms(end - 299));
    script.observed.priority = priority.map(str::to_owned);
    let replica = Replica {
        start: 0,
        exchanges: vec![document, script],
        dom_content_loaded: Some(ms(250)),
        load: Some(ms(300)),
        ..builtin::flags()
    };
    let graph = PageGraph::of(&replica);
    let mut nodes = graph.nodes.iter();
    nodes.find(|node| node.exchange == 1).unwrap().before_load
}

#[test]
fn request_that_ended_after_the_load_event_was_not_waited_for() {
    assert!(waits(300, Some("High")));
    assert!(!waits(301, Some("High")));
    // Times of other recordings are less exact.
    assert!(waits(301, None));
}
