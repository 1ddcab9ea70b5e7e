//! Ranges of a video that a player requests one after the other.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::graph::{PageGraph, Trigger};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::soundness::assert_lawful;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A page with the video `/v.mp4`, of which a first range arrives from 190 to 300 ms, and a second one is requested at `second`. The
/// first is `cancelled` or read to its end, over `protocol`.
fn page(second: (&str, u64), protocol: &str, cancelled: bool) -> Replica {
    let exchange = |path: &str, kind, body: String, started| {
        let url = format!("https://a.test/{path}").parse().unwrap();
        let mut exchange = Exchange::synthetic(url, kind, "text/plain", body);
        exchange.started = Some(ms(started));
        (exchange.wait, exchange.receive) = (Some(ms(90)), Some(ms(110)));
        exchange.observed.protocol = Some(protocol.to_owned());
        exchange
    };
    let html = "<script src=s.js></script><video src=v.mp4></video>".to_owned();
    let mut exchanges = vec![
        exchange("", Kind::Document, html, 0),
        exchange("s.js", Kind::Script, "x".to_owned(), 100),
        exchange("v.mp4", Kind::Media, "x".repeat(50_000), 100),
        exchange(second.0, Kind::Media, "x".repeat(50_000), second.1),
    ];
    exchanges[1].observed.compute = Some(ms(1)); // the times are exact
    exchanges[2].observed.refused = cancelled.then(|| "net::ERR_ABORTED".to_owned());
    for exchange in &mut exchanges[1..] {
        exchange.initiator = Initiator::Resource {
            index: 0,
            at_byte: None,
        };
    }
    Replica {
        start: 0,
        exchanges,
        dom_content_loaded: Some(ms(2_000)),
        load: Some(ms(3_000)),
        ..builtin::flags()
    }
}

/// What triggers the second range, with the exchange of its parent, and its delay in milliseconds.
fn trigger(replica: &Replica) -> (&'static str, usize, u128) {
    let graph = PageGraph::of(replica);
    assert_lawful(replica, &graph, "page with a video");
    let mut nodes = graph.nodes.iter();
    let node = nodes.find(|node| node.exchange == 3).unwrap();
    let parent = graph.nodes[node.parent().unwrap()].exchange;
    let how = match node.trigger {
        Trigger::Start => "start",
        Trigger::Bytes { .. } => "bytes",
        Trigger::Done { .. } => "done",
    };
    (how, parent, node.delay.as_millis())
}

#[test]
fn a_range_that_starts_when_another_ends_follows_it() {
    let by = |second, protocol, cancelled| trigger(&page(second, protocol, cancelled));
    assert_eq!(by(("v.mp4", 305), "h3", false), ("done", 2, 5));
    assert_eq!(by(("v.mp4", 305), "h3", true), ("done", 2, 5));
    assert_eq!(by(("v.mp4", 295), "http/1.1", false), ("done", 2, 0));
    let (_, parent, _) = by(("v.mp4", 321), "h3", false);
    assert_ne!(parent, 2, "too late");
    let (_, parent, _) = by(("w.mp4", 305), "h3", false);
    assert_ne!(parent, 2, "another video");
}

/// Such a recording has more bytes than the browser read, and the player does not wait for them.
#[test]
fn a_range_after_a_cancelled_one_over_h2_follows_its_first_bytes() {
    let (how, parent, delay) = trigger(&page(("v.mp4", 305), "h2", true));
    assert_eq!((how, parent), ("bytes", 2));
    assert_eq!(
        delay,
        305 - 190 - 37,
        "the first 16 KiB arrive 36.04 ms after the head"
    );
    assert_eq!(trigger(&page(("v.mp4", 305), "h2", false)), ("done", 2, 5));
}
