//! Visits of pages of several sites: what a browser separates by site, and what it did not separate before 2020.

use std::time::Duration;

use jiff::Timestamp;
use spdy_net::tls::TlsVersion;
use spdy_page::builtin;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::{Load, Page, WaterfallRow, visit};
use spdy_sim::options::{Cache, Options, RaceProtocol, Scheduler};

use crate::support::whole_load::whole;

const PROTOCOLS: [RaceProtocol; 5] = [
    RaceProtocol::Http,
    RaceProtocol::Https,
    RaceProtocol::Spdy,
    RaceProtocol::H2,
    RaceProtocol::H3,
];

/// A file that every page uses, from a host of another site.
const SHARED: &str = "http://static.cdn.test/shared.png";
/// Two pages of one site, and one of another.
const NEWS: &str = "http://www.one.test/news";
const SHOP: &str = "http://shop.one.test/";
const OTHER: &str = "http://www.two.test/";

fn resource(url: &str, kind: Kind, body: &str, cache_control: &str) -> Exchange {
    let url = url.parse().unwrap();
    let mut exchange = Exchange::synthetic(url, kind, "text/html", body.to_owned());
    let control = Some(cache_control);
    exchange.response_head = head::with_field(&exchange.response_head, "Cache-Control", control);
    exchange
}

/// A page at `url` with the shared file.
fn page(url: &str) -> Page {
    let html = format!("<!DOCTYPE html><img src={SHARED}>");
    let mut document = resource(url, Kind::Document, &html, "no-store");
    document.initiator = Initiator::Navigation;
    let shared = resource(
        SHARED,
        Kind::Image,
        "an image of some bytes",
        "max-age=3600",
    );
    Page::new(Replica {
        name: url.to_owned(),
        start: 0,
        exchanges: vec![document, shared],
        recorded: Some("2024-05-01T10:00:00Z".parse::<Timestamp>().unwrap()),
        failures: Vec::new(),
        ..builtin::flags()
    })
}

/// The load of the last of `urls`, which are visited with so many seconds between two.
fn last_of(urls: &[&str], pause_s: u64, protocol: RaceProtocol, options: &Options) -> Load {
    let pages = urls.iter().map(|url| page(url)).collect();
    let visited = visit(pages, Duration::from_secs(pause_s));
    whole(&visited[urls.len() - 1], protocol, options)
}

fn shared_row(load: &Load) -> Option<&WaterfallRow> {
    load.waterfall.iter().find(|row| row.url == SHARED)
}

#[test]
fn a_page_of_another_site_finds_nothing_of_the_first_site() {
    let options = Options::default();
    for protocol in PROTOCOLS {
        let alone = whole(&page(OTHER), protocol, &options);
        let second = last_of(&[NEWS, OTHER], 1, protocol, &options);
        assert_eq!(second.requests, alone.requests, "{protocol}");
        assert_eq!(second.connections, alone.connections, "{protocol}");
        let shared = shared_row(&second).expect("it is requested again");
        assert!(shared.dns.is_some(), "{protocol}: the name is resolved");
        assert!(shared.connect.is_some(), "{protocol}: on a new connection");
        assert_eq!(shared.body_bytes, 22, "{protocol}");
        // QUIC draws other random numbers, and a later date is compressed to another length.
        let difference = (second.load_ms - alone.load_ms).abs();
        assert!(difference < 0.1, "{protocol}: {difference} ms");
    }
}

#[test]
fn pages_of_one_site_share_everything() {
    let options = Options::default();
    for protocol in PROTOCOLS {
        let second = last_of(&[NEWS, SHOP], 1, protocol, &options);
        assert_eq!(second.requests, 1, "{protocol}: the document");
        assert!(shared_row(&second).is_none(), "{protocol}");
        assert_eq!(second.connections, 1, "{protocol}: to the host of the page");
        let third = last_of(&[NEWS, SHOP, NEWS], 1, protocol, &options);
        assert_eq!((third.requests, third.connections), (1, 0), "{protocol}");
    }
}

#[test]
fn browsers_before_2020_share_everything_between_sites() {
    for options in [Options::lulic(), Options::chromium_49()] {
        for protocol in PROTOCOLS {
            let second = last_of(&[NEWS, OTHER], 1, protocol, &options);
            assert!(shared_row(&second).is_none(), "{protocol}");
            assert_eq!(second.requests, 1, "{protocol}: the document");
        }
    }
}

/// The request for another file of the host of the shared file, by a page at `url` after one at `NEWS`. After the pause no connection is
/// open.
fn row_after_pause(url: &str, protocol: RaceProtocol, options: &Options) -> WaterfallRow {
    let mut second = page(url).replica().clone();
    // It is not stored.
    let unknown = format!("{SHARED}?2");
    second.exchanges[0].body = format!("<!DOCTYPE html><img src={unknown}>").into();
    second.exchanges[1].url = unknown.parse().unwrap();
    let pages = vec![page(NEWS), Page::new(second)];
    let visited = visit(pages, Duration::from_secs(600));
    let load = whole(&visited[1], protocol, options);
    let row = load.waterfall.iter().find(|row| row.url == unknown);
    row.expect("it is requested").clone()
}

/// Round trips of TLS 1.2 with that host: 1 if the session is resumed, else 2.
fn tls_round_trips(url: &str, site_partitions: bool) -> u64 {
    let options = Options {
        tls: TlsVersion::Tls12,
        site_partitions,
        ..Options::default()
    };
    let row = row_after_pause(url, RaceProtocol::H2, &options);
    let (from, until) = row.tls.expect("a new connection");
    ((until - from).as_secs_f64() / 0.06).round() as u64
}

/// Round trips of a new QUIC connection to that host until the first byte.
fn quic_round_trips(url: &str, options: &Options) -> u64 {
    let row = row_after_pause(url, RaceProtocol::H3, options);
    let (from, _) = row.connect.expect("a new connection");
    ((row.first_byte - from).as_secs_f64() / 0.06).round() as u64
}

#[test]
fn a_returning_client_has_its_response_after_one_round_trip_over_http_3() {
    let options = Options::default();
    assert_eq!(quic_round_trips(SHOP, &options), 1, "early data");
    let other = quic_round_trips(OTHER, &options);
    assert_eq!(other, 2, "a session of another site");
    let (mut large, mut unresumed) = (options.clone(), options.clone());
    (large.ml_kem, unresumed.tls_resumption) = (true, false);
    assert_eq!(quic_round_trips(SHOP, &large), 1, "a hello of two packets");
    assert_eq!(quic_round_trips(SHOP, &unresumed), 2, "no session");
    let again = || row_after_pause(SHOP, RaceProtocol::H3, &options);
    assert_eq!(again(), again(), "the same seed");
}

#[test]
fn a_tls_session_is_resumed_only_in_its_site() {
    assert_eq!(tls_round_trips(SHOP, true), 1, "the same site");
    assert_eq!(tls_round_trips(OTHER, true), 2, "a full handshake");
    assert_eq!(tls_round_trips(OTHER, false), 1, "one state for all sites");
}

#[test]
fn a_site_finds_its_own_state_after_another_site() {
    let options = Options::default();
    for protocol in PROTOCOLS {
        let third = last_of(&[NEWS, OTHER, NEWS], 1, protocol, &options);
        assert_eq!((third.requests, third.connections), (1, 0), "{protocol}");
        let fourth = last_of(&[NEWS, OTHER, NEWS, OTHER], 1, protocol, &options);
        assert_eq!((fourth.requests, fourth.connections), (1, 0), "{protocol}");
    }
}

#[test]
fn with_a_browsers_scheduler_a_page_of_another_site_loads_as_alone() {
    let options = Options {
        scheduler: Scheduler::Chromium,
        ..Options::default()
    };
    let alone = whole(&page(OTHER), RaceProtocol::H2, &options);
    let second = last_of(&[NEWS, OTHER], 1, RaceProtocol::H2, &options);
    assert_eq!(second.connections, alone.connections);
    assert_eq!(second.load_ms, alone.load_ms);
}

#[test]
fn a_warm_cache_ages_during_the_pages_of_other_sites() {
    let requests_shared = |pause_s| {
        let options = Options {
            cache: Cache::Warm {
                after: Duration::from_secs(3_300),
            },
            ..Options::default()
        };
        let second = last_of(&[NEWS, OTHER], pause_s, RaceProtocol::H2, &options);
        shared_row(&second).is_some()
    };
    assert!(!requests_shared(200), "3,500 s old, and fresh for 3,600 s");
    assert!(requests_shared(400), "3,700 s old");
}

#[test]
fn a_visit_of_several_sites_is_deterministic() {
    for protocol in [RaceProtocol::H2, RaceProtocol::H3] {
        let load = || last_of(&[NEWS, OTHER, SHOP], 1, protocol, &Options::default());
        assert_eq!(load(), load());
    }
}
