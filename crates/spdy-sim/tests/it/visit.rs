//! Visits: pages one after the other, with one cache and one pool of connections.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use spdy_page::builtin;
use spdy_page::head;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use spdy_sim::load::{self, Load, Page, visit};
use spdy_sim::options::{Accelerator, Cache, Options, RaceProtocol, Scheduler};
use spdy_sim::race::{Race, RaceNetwork};

const PROTOCOLS: [RaceProtocol; 5] = [
    RaceProtocol::Http,
    RaceProtocol::Https,
    RaceProtocol::Spdy,
    RaceProtocol::H2,
    RaceProtocol::H3,
];

fn resource(path: &str, kind: Kind, body: &str, cache_control: &str) -> Exchange {
    let url = format!("http://www.page.test{path}").parse().unwrap();
    let mut exchange = Exchange::synthetic(url, kind, "text/html", body.to_owned());
    let control = Some(cache_control);
    exchange.response_head = head::with_field(&exchange.response_head, "Cache-Control", control);
    exchange
}

/// A page with a logo that is fresh for a minute, an image of its own, and a counter that is never stored.
fn page(name: &str, recorded: &str) -> Replica {
    let html = format!("<!DOCTYPE html><img src=/logo><img src=/{name}.png><img src=/count>");
    let mut document = resource(&format!("/{name}"), Kind::Document, &html, "no-store");
    document.initiator = Initiator::Navigation;
    Replica {
        name: name.to_owned(),
        start: 0,
        exchanges: vec![
            document,
            resource("/logo", Kind::Image, "logo", "max-age=60"),
            resource(
                &format!("/{name}.png"),
                Kind::Image,
                "own image",
                "max-age=60",
            ),
            resource("/count", Kind::Image, "counter", "no-store"),
        ],
        recorded: Some(recorded.parse::<Timestamp>().unwrap()),
        failures: Vec::new(),
        ..builtin::flags()
    }
}

fn pages() -> Vec<Page> {
    let recorded = [
        "2024-05-01T10:00:00Z",
        "2024-05-01T10:00:20Z",
        "2024-05-01T09:00:00Z",
    ];
    let names = ["home", "article", "basket"];
    let pages = names.iter().zip(recorded);
    pages.map(|(name, at)| Page::new(page(name, at))).collect()
}

fn load_of(page: &Page, protocol: RaceProtocol, options: &Options) -> Load {
    let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=60ms").unwrap();
    let config = network.config(options);
    load::load(page, protocol, &network.name, &config, options, 1)
}

fn whole(page: &Page, protocol: RaceProtocol) -> Load {
    let load = load_of(page, protocol, &Options::default());
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

fn paths(load: &Load) -> Vec<&str> {
    let paths = load.waterfall.iter();
    paths
        .map(|row| row.url.strip_prefix("http://www.page.test").unwrap())
        .collect()
}

#[test]
fn later_pages_use_what_the_earlier_ones_left() {
    for protocol in PROTOCOLS {
        let visited = visit(pages(), Duration::from_secs(5));
        let loads: Vec<Load> = visited.iter().map(|page| whole(page, protocol)).collect();
        assert_eq!(paths(&loads[0]), ["/home", "/logo", "/home.png", "/count"]);
        assert_eq!(paths(&loads[1]), ["/article", "/article.png", "/count"]);
        assert_eq!(paths(&loads[2]), ["/basket", "/basket.png", "/count"]);
        let alone = whole(
            &Page::new(page("article", "2024-05-01T10:00:20Z")),
            protocol,
        );
        // The first page has a name look-up and handshakes; each later one only requests.
        for later in &loads[1..] {
            assert_eq!(later.requests, 3, "{protocol}");
            assert!(later.connections < alone.connections, "{protocol}");
            assert!(
                later.load_ms + 100.0 < alone.load_ms,
                "{protocol}: {}",
                later.load_ms
            );
            assert!(later.packets_down < alone.packets_down, "{protocol}");
            let header_bytes = later.request_header_bytes;
            assert!(
                (1..alone.request_header_bytes).contains(&header_bytes),
                "{protocol}"
            );
        }
    }
}

#[test]
fn the_first_page_of_a_visit_loads_like_any_other() {
    for scheduler in [Scheduler::None, Scheduler::Chromium] {
        let options = Options {
            scheduler,
            ..Options::default()
        };
        let replica = builtin::portal();
        let visited = visit(
            vec![Page::new(replica.clone()), Page::new(builtin::flags())],
            Duration::ZERO,
        );
        for protocol in [RaceProtocol::Https, RaceProtocol::H3] {
            let first = load_of(&visited[0], protocol, &options);
            let alone = load_of(&Page::new(replica.clone()), protocol, &options);
            assert_eq!(first.load_ms, alone.load_ms, "{protocol} {scheduler:?}");
            assert_eq!(
                first.bytes_down, alone.bytes_down,
                "{protocol} {scheduler:?}"
            );
        }
    }
}

#[test]
fn stored_responses_age_during_the_visit() {
    let logo_of = |pause: u64| {
        let visited = visit(pages(), Duration::from_secs(pause));
        let last = whole(&visited[2], RaceProtocol::H2);
        paths(&last).contains(&"/logo")
    };
    assert!(!logo_of(25), "50 s old");
    assert!(logo_of(40), "80 s old, and fresh for 60 s");
}

/// The document of the second page is an hour older than the first page, and its logo was fresh for ten minutes then.
#[test]
fn ages_are_those_since_each_recording_in_any_order() {
    let first = page("home", "2024-05-01T10:00:00Z");
    let mut second = page("article", "2024-05-01T09:00:00Z");
    let mut third = page("basket", "2024-05-01T10:00:00Z");
    let shared = |page: &mut Replica| {
        let mut shared = resource("/shared", Kind::Image, "shared", "max-age=600");
        let date = Some("Wed, 01 May 2024 09:00:00 GMT");
        shared.response_head = head::with_field(&shared.response_head, "Date", date);
        page.exchanges[0].body = "<!DOCTYPE html><img src=/shared>".into();
        page.exchanges.truncate(1);
        page.exchanges.push(shared);
    };
    shared(&mut second);
    shared(&mut third);
    let pages = [first, second, third].map(Page::new);
    let visited = visit(pages.into(), Duration::from_secs(5));
    let last = whole(&visited[2], RaceProtocol::H2);
    assert_eq!(paths(&last), ["/basket"], "5 s old");
}

#[test]
fn a_warm_cache_ages_during_the_visit() {
    let options = Options {
        cache: Cache::Warm {
            after: Duration::from_secs(30),
        },
        ..Options::default()
    };
    let requests_logo = |pause, number: usize| {
        let visited = visit(pages(), Duration::from_secs(pause));
        let load = load_of(&visited[number], RaceProtocol::H2, &options);
        paths(&load).contains(&"/logo")
    };
    assert!(!requests_logo(40, 0), "30 s old, and fresh for 60 s");
    assert!(!requests_logo(20, 1), "50 s old");
    assert!(requests_logo(40, 1), "70 s old");
}

#[test]
fn the_same_page_again_needs_only_what_is_not_stored() {
    let twice = || Page::new(page("home", "2024-05-01T10:00:00Z"));
    let visited = visit(vec![twice(), twice()], Duration::from_secs(1));
    let again = whole(&visited[1], RaceProtocol::Spdy);
    assert_eq!(paths(&again), ["/home", "/count"]);
    assert_eq!(again.connections, 0);
}

#[test]
fn with_a_browsers_scheduler_hosts_of_earlier_pages_are_known() {
    let options = Options {
        scheduler: Scheduler::Chromium,
        ..Options::default()
    };
    let visited = visit(pages(), Duration::from_secs(1));
    let first = load_of(&visited[0], RaceProtocol::H2, &options);
    let second = load_of(&visited[1], RaceProtocol::H2, &options);
    assert_eq!((first.connections > 0, second.connections), (true, 0));
    assert!(second.failures.is_empty(), "{:?}", second.failures);
}

#[test]
fn think_times_of_a_page_stay_in_a_visit() {
    let simulated = |think_ms: u64| {
        let think_times = [think_ms, 0, 0, 0].map(Duration::from_millis);
        let page = |name| Page::new(page(name, "2024-05-01T10:00:00Z"));
        let pages = vec![page("home"), page("article").with_think_times(&think_times)];
        let visited = visit(pages, Duration::from_secs(1));
        whole(&visited[1], RaceProtocol::H2).load_ms
    };
    let added = simulated(500) - simulated(0);
    assert!((added - 500.0).abs() < 25.0, "{added} ms");
}

#[test]
fn a_failure_of_an_earlier_page_is_reported_with_its_number() {
    let mut broken = page("home", "2024-05-01T10:00:00Z");
    let mut image = resource("/gone", Kind::Image, "", "no-store");
    image.response_head = "garbage".into();
    broken.exchanges[0].body = "<!DOCTYPE html><img src=/gone>".into();
    broken.exchanges[1] = image;
    let after = page("article", "2024-05-01T10:00:20Z");
    let visited = visit(vec![Page::new(broken), Page::new(after)], Duration::ZERO);
    let load = load_of(&visited[1], RaceProtocol::H2, &Options::default());
    let is_of_first = |failure: &String| failure.starts_with("page 1 of the visit: ");
    assert!(load.failures.iter().any(is_of_first), "{:?}", load.failures);
}

#[test]
fn a_visit_through_an_accelerator_is_refused() {
    let visited = visit(pages(), Duration::ZERO);
    let options = Options {
        accelerator: Accelerator::Cold,
        ..Options::default()
    };
    let load = load_of(&visited[1], RaceProtocol::H2, &options);
    assert!(
        load.failures[0].contains("has no accelerator"),
        "{:?}",
        load.failures
    );
}

#[test]
fn a_race_of_a_visit_is_deterministic_on_any_number_of_threads() {
    let mut race = Race::new(
        vec![builtin::portal(), builtin::flags()],
        vec![RaceNetwork::parse("lte").unwrap()],
    );
    race.visit = Some(Duration::from_secs(3));
    let times = |threads| {
        race.threads = std::num::NonZeroUsize::new(threads);
        let loads = race.run(|_| ());
        assert!(loads.iter().all(|load| load.failures.is_empty()));
        loads.iter().map(|load| load.load_ms).collect::<Vec<_>>()
    };
    let mut times = times;
    assert_eq!(times(1), times(2));
}

#[test]
#[should_panic(expected = "at most")]
fn too_many_pages_are_refused() {
    let pages = (0..=load::MAX_PAGES).map(|_| Page::new(builtin::flags()));
    let _: Vec<Arc<Page>> = visit(pages.collect(), Duration::ZERO);
}
