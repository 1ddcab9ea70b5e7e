//! Properties of all replicas and graphs.

use std::time::Duration;

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use spdy_page::archive;
use spdy_page::graph::PageGraph;
use spdy_page::head;
use spdy_page::observation::{Failure, LargestPaint, Observation, Paints};
use spdy_page::open::{ImportOptions, read};
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};

use crate::support::soundness;

const MAX: usize = 12;

fn any_kind() -> impl Strategy<Value = Kind> {
    prop::sample::select(Kind::ALL.to_vec())
}

fn any_duration() -> impl Strategy<Value = Option<Duration>> {
    option::of((0u64..5_000_000_000).prop_map(Duration::from_nanos))
}

/// There are few URLs, so that they match in texts, Referers and redirects.
fn any_path() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..8u8).prop_map(|n| format!("/{n}")),
        "/[a-z]{1,6}\\?q=[a-z%]{0,4}",
        Just("/".to_owned())
    ]
}

fn any_text() -> impl Strategy<Value = Vec<u8>> {
    let named = any_path().prop_flat_map(|path| {
        prop::sample::select(vec![
            format!("<img src={path}>"),
            format!("<script src='{path}'></script>"),
            format!("<link rel=stylesheet href=\"{path}\">"),
            format!("<iframe src={path}></iframe>"),
            format!("@import url({path}); p {{ background: url('{path}') }}"),
            format!("<style>p {{ background: url({path}) }}</style><noscript>"),
            path,
        ])
    });
    prop_oneof![
        vec(named, 0..6).prop_map(|parts| parts.concat().into_bytes()),
        vec(any::<u8>(), 0..200)
    ]
}

prop_compose! {
    fn any_observed()(
        words in (option::of(".{0,9}"), option::of("[A-Z]?[a-z]{1,8}"), option::of("net::ERR_[A-Z]{1,9}")),
        connection in any::<Option<u32>>(),
        times in (any_duration(), any_duration(), any_duration(), any_duration(), any_duration(), any_duration()),
        request_body in vec(any::<u8>(), 0..40),
    ) -> Observation {
        Observation {
            protocol: words.0,
            priority: words.1,
            refused: words.2,
            connection,
            dns: times.0,
            connect: times.1,
            tls: times.2,
            compute: times.3,
            think_time: times.4,
            raised_after: times.5,
            request_body: request_body.into(),
        }
    }
}

prop_compose! {
    fn any_failure()(
        texts in ("[A-Z]{1,7}", any::<String>(), any::<String>()),
        started in any_duration(),
    ) -> Failure {
        let (method, url, error) = texts;
        Failure { method, url, error, started }
    }
}

prop_compose! {
    fn any_exchange()(
        path in any_path(),
        kind in any_kind(),
        status in prop::sample::select(vec![200u16, 200, 200, 204, 301, 302, 304, 404]),
        method in prop::sample::select(vec![http::Method::GET, http::Method::POST, http::Method::HEAD]),
        location in any_path(),
        referer in option::of(any_path()),
        chunked in any::<bool>(),
        text in any_text(),
        is_coded in any::<bool>(),
        body_is_real in any::<bool>(),
        address in option::of(any::<std::net::IpAddr>()),
        initiator in (0..4u8, 0..MAX, option::of(0..300u64)),
        times in (any_duration(), any_duration(), any_duration(), any_duration()),
        observed in any_observed(),
    ) -> Exchange {
        let mut request = vec![("Host", "a.test".to_owned())];
        request.extend(referer.map(|path| ("Referer", format!("http://a.test{path}"))));
        let mut response = vec![("Location", location)];
        let mut body = text;
        if is_coded {
            body = spdy_page::coding::encode(&body, "gzip", None).unwrap();
            response.push(("Content-Encoding", "gzip".to_owned()));
        }
        if chunked {
            response.push(("Transfer-Encoding", "chunked".to_owned()));
        }
        let (by, index, at_byte) = initiator;
        Exchange {
            url: format!("http://a.test{path}").parse().unwrap(),
            request_head: head::synthesize(&format!("{method} {path} HTTP/1.1"), request),
            response_head: head::synthesize(&format!("HTTP/1.1 {status} X"), response),
            method,
            address,
            body: body.into(),
            body_is_real,
            kind,
            initiator: match by {
                0 => Initiator::Navigation,
                1 => Initiator::Resource { index, at_byte },
                2 => Initiator::Redirect { index },
                _ => Initiator::Unknown,
            },
            started: times.0,
            queued: times.1,
            wait: times.2,
            receive: times.3,
            observed,
        }
    }
}

prop_compose! {
    fn any_paints()(
        first_contentful in any_duration(),
        at in any_duration(),
        url in option::of(any::<String>()),
    ) -> Paints {
        Paints { first_contentful, largest_contentful: at.map(|at| LargestPaint { at, url }) }
    }
}

prop_compose! {
    fn any_replica()(
        name in ".{0,12}",
        source in any::<String>(),
        mut exchanges in vec(any_exchange(), 1..MAX),
        start in any::<prop::sample::Index>(),
        recorded in option::of(-1_000_000_000i64..4_000_000_000),
        dom_content_loaded in any_duration(),
        load in any_duration(),
        paints in any_paints(),
        failures in vec(any_failure(), 0..3),
    ) -> Replica {
        let count = exchanges.len();
        for exchange in &mut exchanges {
            if let Initiator::Resource { index, .. } | Initiator::Redirect { index } = &mut exchange.initiator {
                *index %= count;
            }
        }
        let recorded = recorded.map(|second| jiff::Timestamp::from_second(second).unwrap());
        Replica { name, source, start: start.index(count), exchanges, recorded, dom_content_loaded, load, paints, failures }
    }
}

proptest! {
    /// A written replica parses to itself, with or without gzip, and is written the same again.
    #[test]
    fn a_replica_survives_its_file(replica in any_replica(), gzip in any::<bool>()) {
        let file = archive::encode(&replica, gzip);
        let back = read(file.clone().into(), "x", &ImportOptions::default()).unwrap().replica;
        prop_assert_eq!(archive::encode(&back, gzip), file);
        prop_assert_eq!(back, replica);
    }

    /// For any references, the graph is a tree of all exchanges, and deterministic.
    #[test]
    fn a_graph_is_a_tree_over_every_exchange(replica in any_replica()) {
        let graph = PageGraph::of(&replica);
        soundness::assert_lawful(&replica, &graph, "proptest");
        prop_assert_eq!(PageGraph::of(&replica), graph);
        spdy_page::check::check(&replica);
    }

    /// A file with bytes changed, cut or added is a replica or an error, never a panic.
    #[test]
    fn a_damaged_file_is_an_error_at_worst(
        replica in any_replica(),
        at in any::<prop::sample::Index>(),
        change in vec(any::<u8>(), 0..4),
        cut in 0..8usize,
    ) {
        let mut file = archive::encode(&replica, false);
        let at = at.index(file.len());
        let end = (at + cut).min(file.len());
        file.splice(at..end, change);
        if let Ok(opened) = read(file.into(), "x", &ImportOptions::default()) {
            PageGraph::of(&opened.replica);
            spdy_page::check::check(&opened.replica);
        }
    }

    /// The same for a HAR.
    #[test]
    fn a_damaged_har_is_an_error_at_worst(at in any::<prop::sample::Index>(), change in "[\\]\\[{}:,\"0-9a-z-]{0,3}", cut in 0..40usize) {
        let mut file = include_bytes!("../data/small.har").to_vec();
        let at = at.index(file.len());
        let end = (at + cut).min(file.len());
        file.splice(at..end, change.into_bytes());
        if let Ok(opened) = read(file.into(), "x", &ImportOptions::default()) {
            soundness::assert_sound(&opened.replica, "damaged");
            soundness::assert_lawful(&opened.replica, &PageGraph::of(&opened.replica), "damaged");
        }
    }

    /// The same for a WARC of another program.
    #[test]
    fn a_damaged_warc_is_an_error_at_worst(at in any::<prop::sample::Index>(), change in vec(any::<u8>(), 0..4), cut in 0..40usize) {
        let mut file = include_bytes!("../data/small.warc").to_vec();
        let at = at.index(file.len());
        let end = (at + cut).min(file.len());
        file.splice(at..end, change);
        if let Ok(opened) = read(file.into(), "x", &ImportOptions::default()) {
            soundness::assert_lawful(&opened.replica, &PageGraph::of(&opened.replica), "damaged");
        }
    }

    /// Both scanners accept any bytes.
    #[test]
    fn any_bytes_are_a_document_and_a_sheet(text in vec(any::<u8>(), 0..600), markup in "[<>/a-z='\"&; @(){}!-]{0,300}") {
        for (kind, text) in [(Kind::Document, text), (Kind::Stylesheet, markup.clone().into_bytes()), (Kind::Document, markup.into_bytes())] {
            let url = url::Url::parse("http://a.test/").unwrap();
            let exchange = Exchange::synthetic(url, kind, "text/html", text);
            let replica = Replica {
                name: String::new(),
                source: String::new(),
                start: 0,
                exchanges: vec![exchange],
                recorded: None,
                dom_content_loaded: None,
                load: None,
                paints: Paints::default(),
                failures: Vec::new(),
            };
            PageGraph::of(&replica);
        }
    }
}

/// Visiting each pair of them would take minutes; the chain is also a cycle.
#[test]
fn a_hundred_thousand_exchanges_in_a_backward_chain_are_placed_at_once() {
    let count = 100_000;
    let exchange = |index: usize| {
        let url = format!("http://a.test/{index}").parse().unwrap();
        let mut exchange = Exchange::synthetic(url, Kind::Script, "text/javascript", "x");
        exchange.initiator = Initiator::Resource {
            index: (index + 1) % count,
            at_byte: None,
        };
        exchange.started = Some(Duration::from_millis(index as u64 + 1));
        exchange
    };
    let mut exchanges: Vec<_> = (0..count).map(exchange).collect();
    exchanges[0].kind = Kind::Document;
    let replica = Replica {
        name: String::new(),
        source: String::new(),
        start: 0,
        exchanges,
        recorded: None,
        dom_content_loaded: None,
        load: None,
        paints: Paints::default(),
        failures: Vec::new(),
    };
    soundness::assert_lawful(&replica, &PageGraph::of(&replica), "chain");
}
