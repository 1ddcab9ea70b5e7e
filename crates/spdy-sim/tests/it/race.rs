//! Whole races: determinism, counts, and textbook values.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

use spdy_clock::Instant;
use spdy_page::builtin;
use spdy_sim::load::Load;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::options::{Push, RaceProtocol};
use spdy_sim::race::{Race, RaceNetwork};
use spdy_sim::race_results::RaceResults;
use url::Url;

fn cable(loss_percent: u32) -> RaceNetwork {
    RaceNetwork::parse(&format!(
        "down=5mbit,up=1mbit,rtt=60ms,loss={loss_percent}%"
    ))
    .unwrap()
}

fn both_pages(loss_percent: u32) -> Race {
    Race::new(
        vec![builtin::flags(), builtin::portal()],
        vec![cable(loss_percent)],
    )
}

/// Loads as users see them: the JSON, and the waterfall, which is not in the JSON.
fn written(loads: &[Load]) -> Vec<String> {
    loads
        .iter()
        .map(|load| {
            format!(
                "{}\n{:?}",
                serde_json::to_string(load).unwrap(),
                load.waterfall
            )
        })
        .collect()
}

fn expect_no_failures(loads: &[Load]) {
    for load in loads {
        assert!(
            load.failures.is_empty(),
            "{} {} seed {}: {:?}",
            load.replica,
            load.protocol,
            load.seed,
            load.failures
        );
    }
}

#[test]
fn the_same_seed_gives_the_same_loads_on_any_number_of_threads() {
    let mut race = both_pages(1);
    race.threads = NonZeroUsize::new(1);
    let alone = race.run(|_| ());
    race.threads = NonZeroUsize::new(2);
    let mut reports = Vec::new();
    let together =
        race.run(|progress| reports.push((progress.done, progress.total, progress.load.load_ms)));
    assert_eq!(written(&alone), written(&together));
    let expected: Vec<_> = alone
        .iter()
        .enumerate()
        .map(|(at, load)| (at + 1, 8, load.load_ms))
        .collect();
    assert_eq!(reports, expected, "progress comes in the order of the race");
    expect_no_failures(&alone);
}

#[test]
fn another_seed_changes_loads_only_with_loss() {
    let times = |loss, seed| {
        let mut race = both_pages(loss);
        race.seed = seed;
        race.run(|_| ())
            .iter()
            .map(|load| load.load_ms)
            .collect::<Vec<_>>()
    };
    assert_eq!(times(0, 1), times(0, 2));
    let (one, two) = (times(2, 1), times(2, 2));
    for (at, (one, two)) in one.iter().zip(&two).enumerate() {
        assert_ne!(one, two, "load {at}");
    }
}

#[test]
fn a_run_of_a_race_can_be_repeated_alone_by_its_seed() {
    let mut race = both_pages(2);
    race.protocols = vec![RaceProtocol::Spdy];
    (race.runs, race.seed) = (3, 40);
    let loads = race.run(|_| ());
    assert_eq!(
        loads.iter().map(|load| load.seed).collect::<Vec<_>>(),
        [40, 41, 42, 40, 41, 42]
    );
    (race.runs, race.seed) = (1, 42);
    let again = race.run(|_| ());
    let json = |load| serde_json::to_string(load).unwrap();
    assert_eq!(json(&loads[2]), json(&again[0]));
}

/// Connections by host name, as the waterfall lists them.
fn connections_by_host(load: &Load) -> BTreeMap<String, BTreeSet<usize>> {
    let mut by_host: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for row in &load.waterfall {
        let host = Url::parse(&row.url).unwrap().host_str().unwrap().to_owned();
        by_host.entry(host).or_default().insert(row.connection);
    }
    by_host
}

#[test]
fn http1_opens_at_most_six_connections_a_host_and_spdy_and_h2_open_one() {
    let loads = both_pages(0).run(|_| ());
    expect_no_failures(&loads);
    for load in &loads {
        let name = format!("{} {}", load.replica, load.protocol);
        let by_host = connections_by_host(load);
        let most = by_host.values().map(BTreeSet::len).max().unwrap();
        match load.protocol.as_str() {
            "http" | "https" => assert_eq!(most, 6, "{name}: {by_host:?}"),
            _ => assert_eq!(most, 1, "{name}: {by_host:?}"),
        }
        let used: usize = by_host.values().map(BTreeSet::len).sum();
        assert_eq!(
            load.connections, used as u64,
            "{name}: every connection carried something"
        );
        let hosts = if load.replica == "flags" { 1 } else { 7 };
        assert_eq!(by_host.len(), hosts, "{name}");
    }
}

#[test]
fn every_exchange_of_the_page_happens_once_and_in_order_of_its_phases() {
    for load in both_pages(1).run(|_| ()) {
        let name = format!("{} {}", load.replica, load.protocol);
        let exchanges = if load.replica == "flags" { 197 } else { 44 };
        assert_eq!(
            (load.waterfall.len(), load.requests),
            (exchanges, exchanges as u64),
            "{name}"
        );
        assert!(
            0.0 < load.dom_content_loaded_ms && load.dom_content_loaded_ms <= load.load_ms,
            "{name}"
        );
        assert!(
            load.load_ms <= load.time_on_wire_ms,
            "{name}: the last packet is a connection's farewell"
        );
        for row in &load.waterfall {
            // A connection that another exchange opened may have begun before the page needed this one.
            let mut before = Instant::ZERO;
            for (from, to) in [row.dns, row.connect, row.tls].into_iter().flatten() {
                assert!(before <= from && from <= to, "{name}: {row:?}");
                before = to;
            }
            let sent_after = before.max(row.needed);
            assert!(
                sent_after <= row.sent && row.sent < row.first_byte && row.first_byte <= row.done,
                "{name}: {row:?}"
            );
            assert_eq!(row.status, 200, "{name}: {row:?}");
        }
    }
}

#[test]
fn header_bytes_are_smaller_on_the_wire_where_the_protocol_compresses() {
    for load in both_pages(0).run(|_| ()) {
        let name = format!("{} {}", load.replica, load.protocol);
        let request = load.request_header_bytes_wire as f64 / load.request_header_bytes as f64;
        let response = load.response_header_bytes_wire as f64 / load.response_header_bytes as f64;
        match load.protocol.as_str() {
            "http" | "https" => assert!(
                (0.9..1.1).contains(&request) && (0.9..1.1).contains(&response),
                "{name}: {request} {response}"
            ),
            _ => assert!(
                request < 0.6 && response < 0.6,
                "{name}: {request} {response}"
            ),
        }
    }
}

#[test]
fn uncompressed_header_blocks_cost_packets_up() {
    let mut race = Race::new(vec![builtin::flags()], vec![cable(0)]);
    race.protocols = vec![RaceProtocol::Spdy];
    let with = race.run(|_| ());
    race.options.spdy_compression = spdy_frame::compress::Compression::Zlib(0);
    let without = race.run(|_| ());
    expect_no_failures(&without);
    assert!(
        without[0].bytes_up > 2 * with[0].bytes_up,
        "{} {}",
        without[0].bytes_up,
        with[0].bytes_up
    );
    assert!(without[0].request_header_bytes_wire > with[0].request_header_bytes_wire * 2);
}

/// Regression: closing took a quarter of an hour if an RST was lost: the server retransmitted to a closed endpoint.
#[test]
fn connections_close_soon_after_load_on_a_lossy_link() {
    let mut race = both_pages(2);
    race.protocols = vec![RaceProtocol::Http, RaceProtocol::Https];
    race.runs = 3;
    for load in race.run(|_| ()) {
        let rest_ms = load.time_on_wire_ms - load.load_ms;
        assert!(
            rest_ms < 30_000.0,
            "{} by {}, seed {}: {rest_ms} ms from load to the last packet",
            load.replica,
            load.protocol,
            load.seed
        );
    }
}

/// Regression: timeouts that protect a server from slow peers, of 30 to 180 s, ended SPDY sessions here.
#[test]
fn no_timeout_fires_on_a_slow_link() {
    let slow = RaceNetwork::parse("rate=2kbit,rtt=100ms").unwrap();
    let mut race = Race::new(vec![builtin::flags()], vec![slow]);
    race.protocols = vec![RaceProtocol::Spdy, RaceProtocol::H2];
    race.options.name_lookups = NameLookups::HostsFile;
    expect_no_failures(&race.run(|_| ()));
}

/// Waterfalls of a thousand runs of a large page would have a million rows.
#[test]
fn of_many_runs_only_the_typical_one_keeps_its_waterfall() {
    let mut race = Race::new(vec![builtin::portal()], vec![cable(2)]);
    race.protocols = vec![RaceProtocol::Http, RaceProtocol::Spdy];
    race.runs = 5;
    let mut seen = 0;
    let loads = race.run(|progress| seen += progress.load.waterfall.len());
    assert_eq!(seen, 2 * 5 * 44, "the progress callback receives all rows");
    let standings = RaceResults::of(&loads);
    for entrant in &standings.pages[0].networks[0].protocols {
        assert_eq!(entrant.typical().waterfall.len(), 44);
        let rows: usize = entrant.loads.iter().map(|load| load.waterfall.len()).sum();
        assert_eq!(rows, 44, "{}", entrant.protocol);
    }
}

/// Half of all packets are lost. With some seeds the client gives a connection up, and no packet of this reaches the server, which keeps
/// it: seed 15 in model 16. With others the server gives up in the middle of a response, and the client waits without end: then a
/// resource is missing.
#[test]
fn a_connection_that_never_closes_is_no_failure_of_the_load() {
    let hard = RaceNetwork::parse("rate=10mbit,rtt=50ms,loss=50%").unwrap();
    let mut race = Race::new(vec![builtin::portal()], vec![hard]);
    race.protocols = vec![RaceProtocol::Http];
    race.runs = 40;
    let mut complete = 0;
    race.run(|progress| {
        let load = progress.load;
        let is_complete = load.waterfall.len() == 44;
        complete += usize::from(is_complete);
        let mut failures = load.failures.iter();
        let is_stalled = failures.any(|reason| reason.contains("did not end"));
        assert!(
            !(is_stalled && is_complete),
            "seed {}: {:?}",
            load.seed,
            load.failures
        );
    });
    assert!(complete > 0, "no load had all resources");
}

/// `portal`, with four hosts at one address: its own, and those of its pictures and style.
fn with_shared_address() -> Race {
    let mut page = builtin::portal();
    let own = page.document().address;
    for exchange in &mut page.exchanges {
        let host = exchange.url.host_str().unwrap();
        if host.ends_with("portal.test") || host.ends_with("portal-cdn.test") {
            exchange.address = own;
        }
    }
    Race::new(vec![page], vec![cable(1)])
}

#[test]
fn hosts_at_one_address_share_a_session_only_with_pooling() {
    let apart = with_shared_address().run(|_| ());
    let mut race = with_shared_address();
    race.options.ip_pooling = true;
    let together = race.run(|_| ());
    expect_no_failures(&together);
    assert_eq!(
        written(&together),
        written(&race.run(|_| ())),
        "and it repeats"
    );
    for (apart, together) in apart.iter().zip(&together) {
        let saved = apart.connections - together.connections;
        let can_share = ["spdy", "h2"].contains(&apart.protocol.as_str());
        assert_eq!(saved, if can_share { 3 } else { 0 }, "{}", apart.protocol);
        if can_share {
            assert!(together.load_ms < apart.load_ms, "{}", apart.protocol);
        } else {
            assert_eq!(together.load_ms, apart.load_ms, "{}", apart.protocol);
        }
    }
}

#[test]
fn pushes_save_spdy_requests_and_change_nothing_else() {
    let without = both_pages(1).run(|_| ());
    let mut race = both_pages(1);
    race.options.push = Push::ByGraph;
    let with = race.run(|_| ());
    expect_no_failures(&with);
    assert_eq!(written(&with), written(&race.run(|_| ())), "and it repeats");
    for (without, with) in without.iter().zip(&with) {
        let name = format!("{} {}", with.replica, with.protocol);
        if with.protocol == "spdy" {
            assert!(with.requests < without.requests, "{name}");
            assert_eq!(with.waterfall.len(), without.waterfall.len(), "{name}");
        } else {
            // Their servers send no hints either: loads are compared with the same bytes.
            assert_eq!(with, without, "{name}");
        }
    }
}

#[test]
fn qlogs_repeat_with_the_seed_and_change_no_load() {
    let race = |qlog: bool| {
        let mut race = both_pages(1);
        race.protocols = vec![RaceProtocol::H3, RaceProtocol::H2];
        race.options.qlog = qlog;
        let mut logs = Vec::new();
        let loads = race.run(|progress| logs.push(progress.load.qlogs.clone()));
        assert!(loads.iter().all(|load| load.qlogs.is_empty()));
        (written(&loads), loads, logs)
    };
    let (with, loads, logs) = race(true);
    let (without, _, none) = race(false);
    assert_eq!(with, without);
    assert!(none.iter().all(Vec::is_empty));
    assert!(logs == race(true).2, "the logs of the same seed differ");
    for (load, logs) in loads.iter().zip(&logs) {
        let connections = match load.protocol.as_str() {
            "h3" => load.connections as usize,
            _ => 0,
        };
        assert_eq!(
            logs.len(),
            connections,
            "{} {}",
            load.replica,
            load.protocol
        );
        for log in logs {
            let mut last = 0.0;
            // Each record begins with a record separator (RFC 7464).
            let text = std::str::from_utf8(&log.bytes).unwrap();
            let mut records = text.split_terminator('\u{1e}').skip(1);
            let head: serde_json::Value = serde_json::from_str(records.next().unwrap()).unwrap();
            assert_eq!(head["qlog_format"], "JSON-SEQ");
            for record in records {
                let event: serde_json::Value = serde_json::from_str(record).unwrap();
                let time = event["time"].as_f64().unwrap();
                assert!(time >= last, "{record}");
                last = time;
            }
            assert!(last > 0.0 && last <= load.load_ms + 60_000.0);
        }
    }
}
