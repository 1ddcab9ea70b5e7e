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
use spdy_page::replica::Replica;
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
