//! Factors of an experiment: each has the effect that it is for, and not only on the clock.

use std::collections::{BTreeMap, BTreeSet};

use spdy_lab::browser::{self, Page};
use spdy_lab::deployment::Deployment;
use spdy_lab::experiment::plan::Plan;
use spdy_lab::experiment::runner::Runner;
use spdy_lab::measure::Load;
use spdy_lab::options::{Options, RaceProtocol};
use spdy_lab::race::RaceNetwork;
use spdy_page::builtin;
use spdy_page::replica::{Exchange, Initiator, Kind, Replica};
use url::Url;

/// An experiment over `replica` by `protocol`: the load of each cell.
fn run(replica: &Replica, protocol: RaceProtocol, factors: &str) -> Vec<Load> {
    let text = format!(
        "name = 'factors'\npages = ['page']\nprotocols = ['{protocol}']\n[factors]\nnetwork = 'cable'\n{factors}\n"
    );
    let plan = Plan::parse(&text).unwrap_or_else(|error| panic!("{factors}: {error}"));
    let runner = Runner::new(plan, vec![replica.clone()]);
    let cells = runner.plan().cells();
    let loads = cells.map(|cell| {
        let key = cell.key();
        let mut loads = runner.load(cell, || false).unwrap().unwrap().loads;
        assert_eq!(loads.len(), 1, "{key}");
        let load = loads.remove(0);
        assert!(load.failures.is_empty(), "{key}: {:?}", load.failures);
        load
    });
    loads.collect()
}

/// One load with its waterfall.
fn load(replica: &Replica, protocol: RaceProtocol, options: &Options) -> Load {
    let network = RaceNetwork::parse("cable").unwrap();
    let (page, config) = (Page::new(replica.clone()), network.config(options));
    let load = browser::load(&page, protocol, &network.name, &config, options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

/// How many connections each host has.
fn connections(load: &Load) -> BTreeMap<String, usize> {
    let mut by_host = BTreeMap::<_, BTreeSet<_>>::new();
    for row in &load.waterfall {
        let host = Url::parse(&row.url).unwrap().host_str().unwrap().to_owned();
        by_host.entry(host).or_default().insert(row.connection);
    }
    by_host
        .into_iter()
        .map(|(host, connections)| (host, connections.len()))
        .collect()
}

/// Why a plan with `factors` is none.
fn told(factors: &str) -> String {
    let text = format!("name = 'a'\npages = ['page']\n[factors]\nnetwork = 'cable'\n{factors}\n");
    Plan::parse(&text).expect_err(factors).to_string()
}

#[test]
fn where_only_the_page_s_own_site_speaks_the_protocol_others_are_loaded_as_by_http1() {
    let portal = builtin::portal();
    let own = ["www.portal.test", "img.portal.test", "thumbs.portal.test"];
    let options = |deployment| Options {
        deployment,
        ..Options::default()
    };
    for (protocol, base) in [
        (RaceProtocol::Spdy, RaceProtocol::Https),
        (RaceProtocol::H2, RaceProtocol::Https),
        (RaceProtocol::SpdyPlain, RaceProtocol::Http),
    ] {
        let without = connections(&load(&portal, base, &options(Deployment::All)));
        let all = connections(&load(&portal, protocol, &options(Deployment::All)));
        let some = load(&portal, protocol, &options(Deployment::FirstParty));
        assert_eq!(all.len(), 7);
        assert!(all.values().all(|&count| count == 1), "{all:?}");
        for (host, count) in connections(&some) {
            let want = if own.contains(&&host[..]) {
                1
            } else {
                without[&host]
            };
            assert_eq!(count, want, "{protocol} to {host}");
        }
        // What is spoken there has no compressed heads.
        assert!(some.request_header_bytes_wire < some.request_header_bytes);
        let levels = run(&portal, protocol, "deploy = ['all', 'first-party']");
        assert!(levels[0].connections < levels[1].connections, "{protocol}");
        assert!(levels[0].request_header_bytes_wire < levels[1].request_header_bytes_wire);
    }
    let https = run(
        &portal,
        RaceProtocol::Https,
        "deploy = ['all', 'first-party']",
    );
    assert_eq!(https[0].load_ms, https[1].load_ms, "nothing to deploy");
    assert!(told("deploy = 'some'").contains("want all or first-party"));
}

#[test]
fn hosts_of_one_address_speak_what_each_of_them_speaks() {
    let mut portal = builtin::portal();
    let own = portal.document().address;
    for exchange in &mut portal.exchanges {
        exchange.address = own;
    }
    for ip_pooling in [false, true] {
        let options = Options {
            ip_pooling,
            deployment: Deployment::FirstParty,
            ..Options::default()
        };
        let load = load(&portal, RaceProtocol::Spdy, &options);
        let connections = connections(&load);
        assert_eq!(connections["img.portal.test"], 1);
        assert_eq!(connections["pixel.counter.test"], 6);
        let own = if ip_pooling { 1 } else { 3 };
        assert_eq!(load.connections, own + 4 * 6);
    }
}

/// `count` images of `bytes`, named by a document of a kilobyte or so.
fn images(count: usize, bytes: usize) -> Replica {
    let url = |path: &str| Url::parse(&format!("http://www.page.test/{path}")).unwrap();
    let tags: String = (0..count)
        .map(|at| format!("<img src=/{at}.png>"))
        .collect();
    let document = Exchange {
        initiator: Initiator::Navigation,
        ..Exchange::synthetic(url(""), Kind::Document, "text/html", tags)
    };
    let body = "x".repeat(bytes);
    let image = |at| {
        let at = url(&format!("{at}.png"));
        Exchange::synthetic(at, Kind::Image, "image/png", body.clone())
    };
    Replica {
        name: "images".to_owned(),
        source: "made by a test".to_owned(),
        start: 0,
        exchanges: [document]
            .into_iter()
            .chain((0..count).map(image))
            .collect(),
        recorded: None,
        dom_content_loaded: None,
        load: None,
    }
}

#[test]
fn the_three_versions_of_spdy_carry_the_same_page_each_by_its_own_dictionary() {
    let portal = builtin::portal();
    let of = |protocol| load(&portal, protocol, &Options::default());
    let versions = [RaceProtocol::Spdy, RaceProtocol::Spdy3, RaceProtocol::Spdy2].map(of);
    let [latest, third, second] = &versions;
    for load in &versions {
        assert_eq!(load.requests, 44, "{}", load.protocol);
        assert_eq!(load.connections, 7, "{}", load.protocol);
        assert!(load.request_header_bytes_wire * 2 < load.request_header_bytes);
    }
    // 3.1 is 3 with windows for sessions, and writes the same header blocks.
    assert_eq!(
        latest.request_header_bytes_wire,
        third.request_header_bytes_wire
    );
    assert_ne!(
        latest.request_header_bytes_wire,
        second.request_header_bytes_wire
    );
    assert_eq!(latest.protocol, "spdy");
    assert_eq!(third.protocol, "spdy3");
    assert_eq!(second.protocol, "spdy2");
}

/// The client grants a stream 1 MiB, and so no more than that in a round trip, where there are windows.
#[test]
fn spdy2_has_no_window_that_a_long_fat_link_could_wait_for() {
    let page = images(1, 12_000_000);
    let far = |protocol| {
        let network = RaceNetwork::parse("rate=1gbit,rtt=300ms,queue=20000p").unwrap();
        let (page, options) = (Page::new(page.clone()), Options::default());
        let config = network.config(&options);
        let load = browser::load(&page, protocol, "", &config, &options, 1);
        assert!(load.failures.is_empty(), "{:?}", load.failures);
        load.load_ms / 300.0
    };
    let [latest, third, second] =
        [RaceProtocol::Spdy, RaceProtocol::Spdy3, RaceProtocol::Spdy2].map(far);
    assert_eq!(latest.round(), third.round());
    assert!(second + 2.0 < third, "{second} {third} round trips");
}
