//! Delays that a load repeats from its recording.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::replica::{Exchange, Kind, Replica};
use spdy_sim::load::{self, Page};
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A page whose script ends at 200 ms and runs for 20 ms, with a recorded load event.
fn page(load: Duration) -> Page {
    let exchange = |path: &str, kind, body: &str, started| {
        let url = format!("http://a.test/{path}").parse().unwrap();
        Exchange {
            started: Some(ms(started)),
            wait: Some(ms(100)),
            receive: Some(ms(0)),
            ..Exchange::synthetic(url, kind, "text/html", body.to_owned())
        }
    };
    let mut script = exchange("s.js", Kind::Script, "x", 100);
    script.observed.compute = Some(ms(20));
    let document = exchange("", Kind::Document, "<script src=s.js></script>", 0);
    Page::new(Replica {
        start: 0,
        exchanges: vec![document, script],
        load: Some(load),
        ..builtin::flags()
    })
}

#[test]
fn the_load_event_is_as_late_as_in_the_recording() {
    let load_ms = |recorded| {
        let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=60ms").unwrap();
        let options = Options::default();
        let config = network.config(&options);
        let page = page(recorded);
        let load = load::load(&page, RaceProtocol::H2, "any", &config, &options, 1);
        assert!(load.failures.is_empty(), "{:?}", load.failures);
        load.load_ms
    };
    let at_once = load_ms(ms(220));
    let later = load_ms(ms(245));
    assert!((later - at_once - 25.0).abs() < 1e-6, "{at_once}, {later}");
}
