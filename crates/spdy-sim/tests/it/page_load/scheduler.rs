//! Requests that a browser's scheduler delays, by hand, and in whole loads.

use std::collections::BTreeSet;
use std::time::Duration;

use spdy_clock::Instant;
use spdy_page::builtin;
use spdy_page::graph::{Node, PageGraph, Trigger};
use spdy_page::replica::Kind;
use spdy_sim::load::{self, Page};
use spdy_sim::options::Scheduler;
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::page_load::PageLoad;
use spdy_sim::page_load::{Urgency, UrgencyPlan};
use spdy_sim::race::RaceNetwork;

fn node(kind: Kind, trigger: Trigger, blocks_parser_at: Option<u64>) -> Node {
    Node {
        exchange: 0,
        kind,
        trigger,
        delay: Duration::ZERO,
        is_redirect: false,
        blocks_parser_at,
        waits_for: None,
        blocks_scripts: false,
        before_dom_content_loaded: kind != Kind::Image,
        before_load: true,
        compute: Duration::ZERO,
        is_written: false,
        imports: Vec::new(),
    }
}

fn at(at_byte: u64) -> Trigger {
    Trigger::Bytes { parent: 0, at_byte }
}

/// Nodes that the page has requested since the last call.
fn requested_nodes(page: &mut PageLoad<'_>) -> Vec<usize> {
    std::iter::from_fn(|| page.poll_request())
        .map(|request| request.node)
        .collect()
}

#[test]
fn images_wait_until_head_scripts_and_their_output_ran() {
    let nodes = vec![
        node(Kind::Document, Trigger::Start, None),
        node(Kind::Script, at(10), Some(10)),
        node(Kind::Script, at(20), Some(20)),
        Node {
            is_written: true,
            ..node(Kind::Script, Trigger::Done { parent: 2 }, None)
        },
        node(Kind::Image, at(60), None),
        node(Kind::Image, at(70), None),
        node(Kind::Image, at(75), None),
        node(Kind::Script, at(80), Some(80)),
    ];
    let graph = PageGraph { nodes };
    let (low, high) = (Urgency::Low, Urgency::High);
    let mut page = PageLoad::new(&graph);
    let plan = UrgencyPlan {
        urgency: vec![high, high, high, high, low, low, low, high],
        host: vec![0; 8],
        partition: vec![0; 8],
        is_multiplexed: vec![true; 8],
        is_measured: vec![true; 8],
        known_hosts: [].into(),
        same_url: [].into(),
        raised_after: [].into(),
        body_at: [(0, 50)].into(),
    };
    page.schedule(Scheduler::Chromium, plan);
    let ms = Instant::from_millis;
    page.start(ms(0));
    assert_eq!(
        requested_nodes(&mut page),
        [0],
        "a navigation is never delayed"
    );
    page.handle_bytes(ms(100), 0, 100);
    assert_eq!(requested_nodes(&mut page), [1, 2, 7]);
    page.handle_done(ms(110), 0);
    page.handle_done(ms(200), 1);
    assert_eq!(requested_nodes(&mut page), [0; 0], "two others run");
    page.handle_done(ms(210), 2);
    assert_eq!(
        requested_nodes(&mut page),
        [4, 3],
        "one beside one, and what was written"
    );
    page.handle_done(ms(300), 7);
    assert_eq!(
        requested_nodes(&mut page),
        [0; 0],
        "the parser waits for what was written"
    );
    page.handle_done(ms(310), 3);
    assert_eq!(
        requested_nodes(&mut page),
        [5, 6],
        "one beside one, and then the body"
    );
    for image in [4, 5, 6] {
        page.handle_done(ms(400), image);
    }
    assert_eq!(page.load(), Some(ms(400)));
}

/// Both shipped pages by every protocol, over a network that Chromium classifies as slow and one that it does not.
#[test]
fn a_throttled_load_is_complete_and_deterministic() {
    let options = Options {
        scheduler: Scheduler::Chromium,
        ..Options::default()
    };
    for replica in [builtin::portal(), builtin::flags()] {
        let page = Page::new(replica);
        for (name, protocol) in [
            ("3g", RaceProtocol::Http),
            ("cable", RaceProtocol::Spdy),
            ("3g", RaceProtocol::H2),
            ("cable", RaceProtocol::H3),
        ] {
            let network = RaceNetwork::parse(name).expect("it has a name");
            let load = || {
                let config = network.config(&options);
                load::load(&page, protocol, &network.name, &config, &options, 1)
            };
            let (one, again) = (load(), load());
            assert_eq!(one.failures, [""; 0], "{protocol} over {name}");
            assert_eq!(one.load_ms, again.load_ms, "{protocol} over {name}");
            let count = page.graph().nodes.len();
            assert_eq!(one.waterfall.len(), count, "{protocol} over {name}");
        }
    }
}

#[test]
fn a_request_for_a_url_waits_for_the_head_of_the_one_before() {
    let video = || node(Kind::Media, at(60), None);
    let graph = PageGraph {
        nodes: vec![
            node(Kind::Document, Trigger::Start, None),
            video(),
            video(),
            video(),
            node(Kind::Image, at(70), None),
        ],
    };
    let plan = UrgencyPlan {
        urgency: vec![Urgency::Low; 5],
        host: vec![0; 5],
        partition: vec![0; 5],
        is_multiplexed: vec![true; 5],
        is_measured: vec![true; 5],
        same_url: [(1, 0), (2, 0), (3, 0)].into(),
        known_hosts: [].into(),
        raised_after: [].into(),
        body_at: [(0, 50)].into(),
    };
    let mut page = PageLoad::new(&graph);
    page.schedule(Scheduler::Chromium, plan);
    let ms = Instant::from_millis;
    page.start(ms(0));
    assert_eq!(requested_nodes(&mut page), [0]);
    page.handle_done(ms(100), 0);
    assert_eq!(requested_nodes(&mut page), [1, 4]);
    page.handle_head(ms(200), 1);
    assert_eq!(requested_nodes(&mut page), [2]);
    page.handle_done(ms(210), 1);
    assert_eq!(requested_nodes(&mut page), [0; 0], "its head was enough");
    page.handle_failed(ms(300), 2);
    assert_eq!(requested_nodes(&mut page), [3]);
    page.handle_head(ms(400), 3);
    page.handle_done(ms(400), 3);
    page.handle_done(ms(400), 4);
    assert!(page.is_finished());
}

/// Chromium gives the first images of a page a higher priority than a video. By kind alone it would be the other way round.
#[test]
fn requests_over_http1_have_chromiums_priorities() {
    let priorities = |scheduler, protocol| {
        let mut replica = builtin::portal();
        for exchange in &mut replica.exchanges[1..] {
            exchange.observed.priority = Some("Medium".to_owned());
        }
        let options = Options {
            scheduler,
            ..Options::default()
        };
        let network = RaceNetwork::parse("cable").expect("it has a name");
        let config = network.config(&options);
        let page = Page::new(replica);
        let load = load::load(&page, protocol, "cable", &config, &options, 1);
        let images = load.waterfall.iter().filter(|row| row.kind == Kind::Image);
        let priorities: BTreeSet<u8> = images.map(|row| row.priority).collect();
        priorities.into_iter().collect::<Vec<_>>()
    };
    let (chromium, none) = (Scheduler::Chromium, Scheduler::None);
    assert_eq!(priorities(chromium, RaceProtocol::Https), [2]);
    assert_eq!(priorities(chromium, RaceProtocol::H2), [2]);
    assert_eq!(priorities(none, RaceProtocol::Https), [4]);
    assert_eq!(priorities(chromium, RaceProtocol::Spdy), [4]);
}
