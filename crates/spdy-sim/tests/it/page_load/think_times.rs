//! Recorded think times of servers in page loads.

use std::time::Duration;

use spdy_page::builtin;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::{self, Load, Page};
use spdy_sim::options::{Accelerator, Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// A resource of `www.page.test` whose response was waited for `wait`.
fn resource(path: &str, kind: Kind, media: &str, body: &str, wait: u64) -> Exchange {
    let url = format!("http://www.page.test{path}").parse().unwrap();
    let mut exchange = Exchange::synthetic(url, kind, media, body.to_owned());
    exchange.wait = Some(ms(wait));
    exchange
}

/// A document that its server computed for 260 ms, and an image that its server computed for 30 ms.
fn page() -> Replica {
    let html = "<!DOCTYPE html><img src=/fast.png><img src=/slow.png>";
    let mut document = resource("/", Kind::Document, "text/html", html, 300);
    document.initiator = Initiator::Navigation;
    let control = Some("max-age=3600");
    document.response_head = head::with_field(&document.response_head, "Cache-Control", control);
    let image = |path, wait| resource(path, Kind::Image, "image/png", "png", wait);
    let mut page = Replica {
        name: "page".to_owned(),
        exchanges: vec![document, image("/fast.png", 40), image("/slow.png", 70)],
        ..builtin::flags()
    };
    for exchange in &mut page.exchanges[1..] {
        exchange.response_head =
            head::with_field(&exchange.response_head, "Cache-Control", control);
    }
    page
}

fn load_with(page: &Page, protocol: RaceProtocol, options: &Options) -> Load {
    let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=60ms").unwrap();
    let config = network.config(options);
    let load = load::load(page, protocol, &network.name, &config, options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

/// Milliseconds that loads with `scale` take longer than without think times.
fn added_ms(protocol: RaceProtocol, scale: f64, accelerator: Accelerator) -> f64 {
    let page = Page::new(page());
    let load_ms = |think_time_scale| {
        let options = Options {
            think_time_scale,
            accelerator,
            ..Options::default()
        };
        load_with(&page, protocol, &options).load_ms
    };
    load_ms(scale) - load_ms(0.0)
}

#[test]
fn a_load_takes_longer_by_the_think_times_of_document_and_slowest_image() {
    assert_eq!(page().think_times(), [ms(260), ms(0), ms(30)]);
    for protocol in RaceProtocol::ALL {
        for (scale, expected) in [(1.0, 290.0), (0.5, 145.0), (2.0, 580.0)] {
            let added = added_ms(protocol, scale, Accelerator::Off);
            // An acknowledgement that is sent while the server computes arrives with no data, and later responses differ by it.
            assert!(
                (added - expected).abs() < 2.0,
                "{protocol} at {scale}: {added} ms, expected {expected}"
            );
        }
    }
}

#[test]
fn think_times_are_replayed_unless_they_are_switched_off() {
    assert!((Options::default().think_time_scale - 1.0).abs() < f64::EPSILON);
    let page = Page::new(page());
    let waits = |options: &Options| {
        let load = load_with(&page, RaceProtocol::Http, options);
        load.waterfall
            .iter()
            .map(|row| (row.first_byte - row.sent).as_secs_f64() * 1e3)
            .collect::<Vec<_>>()
    };
    let (replayed, none) = (
        waits(&Options::default()),
        waits(&Options {
            think_time_scale: 0.0,
            ..Options::default()
        }),
    );
    for ((with, without), expected) in replayed.iter().zip(&none).zip([260.0, 0.0, 30.0]) {
        assert!(
            (with - without - expected).abs() < 2.0,
            "{replayed:?} {none:?}"
        );
    }
}

#[test]
fn an_accelerator_pays_think_times_only_for_what_it_fetches() {
    let cold = added_ms(RaceProtocol::Http, 1.0, Accelerator::Cold);
    assert!((255.0..320.0).contains(&cold), "{cold} ms");
    let warm = added_ms(RaceProtocol::Http, 1.0, Accelerator::Warm);
    assert!(warm.abs() < 2.0, "{warm} ms");
}
