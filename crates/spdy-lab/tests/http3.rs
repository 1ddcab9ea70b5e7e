//! HTTP/3 in virtual time: real QUIC over modelled links, held to what can be worked out by hand.

use std::num::NonZeroUsize;

use bytes::Bytes;
use spdy_lab::measure::Load;
use spdy_lab::options::RaceProtocol;
use spdy_lab::race::{Race, RaceNetwork};
use spdy_lab::sim::dns::NameLookups;
use spdy_net::tls::TlsVersion;
use spdy_page::builtin;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use url::Url;

/// A page of one document of `len` bytes.
fn document(len: usize) -> Replica {
    let body: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    let url = Url::parse("https://a.test/").unwrap();
    let document = Exchange::synthetic(url, Kind::Document, "text/plain", Bytes::from(body));
    Replica {
        name: "document".to_owned(),
        source: "made by a test".to_owned(),
        start: 0,
        recorded: None,
        dom_content_loaded: None,
        load: None,
        exchanges: vec![Exchange {
            initiator: Initiator::Navigation,
            ..document
        }],
    }
}

fn race(page: Replica, network: &str, protocol: RaceProtocol) -> Race {
    let mut race = Race::new(vec![page], vec![RaceNetwork::parse(network).unwrap()]);
    race.protocols = vec![protocol];
    race.options.name_lookups = NameLookups::Known;
    race
}

fn one(race: &Race) -> Load {
    let load = race.run(|_| ()).remove(0);
    assert!(
        load.failures.is_empty(),
        "seed {}: {:?}",
        load.seed,
        load.failures
    );
    load
}

/// Loads as people and programs see them: the JSON, and the waterfall that it leaves out.
fn written(loads: &[Load]) -> Vec<String> {
    let json = |load: &Load| serde_json::to_string(load).unwrap();
    let loads = loads.iter();
    loads
        .map(|load| format!("{}\n{:?}", json(load), load.waterfall))
        .collect()
}

#[test]
fn the_first_byte_of_a_small_answer_comes_after_two_round_trips_and_over_tcp_after_more() {
    for (protocol, tls, round_trips) in [
        (RaceProtocol::H3, TlsVersion::Tls13, 2.0),
        (RaceProtocol::H3, TlsVersion::Tls12, 2.0), // it has no choice
        (RaceProtocol::Http, TlsVersion::Tls13, 2.0),
        (RaceProtocol::H2, TlsVersion::Tls13, 3.0),
        (RaceProtocol::Https, TlsVersion::Tls12, 4.0),
    ] {
        let mut race = race(document(100), "rate=100mbit,rtt=100ms", protocol);
        race.options.tls = tls;
        let load = one(&race);
        let first_byte_ms = load.waterfall[0].first_byte.as_millis_f64();
        // At 100 Mbit/s a packet takes 0.12 ms.
        let more = first_byte_ms - 100.0 * round_trips;
        assert!(
            (0.0..2.0).contains(&more),
            "{protocol} {tls}: {first_byte_ms} ms"
        );
    }
}

#[test]
fn a_large_object_fills_the_link() {
    const RTT_MS: f64 = 40.0;
    for mbit in [1.0, 10.0, 100.0] {
        let network = format!("rate={mbit}mbit,rtt={RTT_MS}ms");
        let load = one(&race(document(5_000_000), &network, RaceProtocol::H3));
        // Packets of 1,480 bytes, 1,452 of QUIC; a head, a tag and a frame leave some 1,410.
        assert!(
            load.bytes_down < 5_000_000 * 105 / 100,
            "{}",
            load.bytes_down
        );
        let line_ms = load.bytes_down as f64 * 8.0 / (mbit * 1000.0);
        // Two round trips to the first byte; from ten packets on a window that doubles has 100 Mbit/s filled after six.
        let more = load.load_ms - line_ms;
        assert!(
            (2.0 * RTT_MS..9.0 * RTT_MS).contains(&more),
            "{mbit} Mbit/s: {more} ms"
        );
        if mbit <= 10.0 {
            assert!(more < 4.0 * RTT_MS, "{mbit} Mbit/s: {more} ms");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_nanoseconds_on_any_number_of_threads_and_another_gives_others() {
    let network = "down=5mbit,up=1mbit,rtt=60ms,loss=2%";
    let loads = |threads, seed| {
        let mut race = race(builtin::portal(), network, RaceProtocol::H3);
        race.replicas.push(builtin::flags());
        (race.threads, race.runs, race.seed) = (NonZeroUsize::new(threads), 3, seed);
        written(&race.run(|_| ()))
    };
    let first = loads(1, 7);
    assert_eq!(first, loads(2, 7));
    for (first, other) in first.iter().zip(loads(2, 100)) {
        assert_ne!(*first, other);
    }
}

#[test]
fn every_byte_arrives_over_a_link_that_loses_and_over_one_that_is_slow() {
    for network in [
        "down=5mbit,up=1mbit,rtt=60ms,loss=5%",
        "rate=2mbit,rtt=300ms,loss=1%,jitter=20ms",
        "rate=20kbit,rtt=100ms",
    ] {
        let load = one(&race(builtin::flags(), network, RaceProtocol::H3));
        assert_eq!(load.requests, load.waterfall.len() as u64, "{network}");
    }
}

#[test]
fn connections_packets_and_bytes_are_counted_as_of_tcp() {
    let load = one(&race(
        builtin::portal(),
        "rate=10mbit,rtt=40ms",
        RaceProtocol::H3,
    ));
    let hosts: std::collections::BTreeSet<_> =
        load.waterfall.iter().map(|row| row.connection).collect();
    assert_eq!(load.connections, hosts.len() as u64);
    let bodies: u64 = load.waterfall.iter().map(|row| row.body_bytes).sum();
    assert!(load.bytes_down > bodies + 28 * load.packets_down);
    assert!(load.bytes_down < bodies * 12 / 10 + 5_000 * load.connections);
    assert!(load.packets_up > load.packets_down / 4, "acknowledgements");
    assert!(load.request_header_bytes_wire < load.request_header_bytes);
    assert!(load.response_header_bytes_wire < load.response_header_bytes);
    // Each connection ends with one packet, and nothing follows it.
    assert!(load.time_on_wire_ms < load.load_ms + 100.0);
}
