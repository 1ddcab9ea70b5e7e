//! Shipped pages of the lab through the accelerator.

use std::collections::BTreeSet;
use std::time::Duration;

use spdy_lab::experiment::builtin_experiments;
use spdy_sim::load::{self, Load, Page};
use spdy_sim::options::{Accelerator, Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;
use url::Url;

fn through(accelerator: Accelerator) -> Options {
    Options {
        accelerator,
        backhaul: Duration::from_millis(20),
        ..Options::default()
    }
}

/// One load over `cable`; the test fails if it is incomplete.
fn load(page: &Page, protocol: RaceProtocol, options: &Options) -> Load {
    let network = RaceNetwork::parse("cable").unwrap();
    let config = network.config(options);
    let load = load::load(page, protocol, &network.name, &config, options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}

fn hosts(load: &Load) -> BTreeSet<String> {
    let urls = load
        .waterfall
        .iter()
        .map(|row| Url::parse(&row.url).unwrap());
    urls.map(|url| url.host_str().unwrap().to_owned()).collect()
}

/// The bytes are compared as they arrive: unchanged content with that of the origin, and pages and style sheets with the rewriter's
/// output. A load with one wrong byte has a failure.
#[test]
fn every_byte_of_the_shipped_pages_comes_through_by_every_protocol() {
    for name in ["mineki", "portal", "lulic-bing"] {
        let page = Page::new(builtin_experiments::page(name).unwrap());
        for protocol in RaceProtocol::ALL {
            for accelerator in [Accelerator::Cold, Accelerator::Warm] {
                let load = load(&page, protocol, &through(accelerator));
                assert_eq!(
                    load.waterfall.len(),
                    page.replica().exchanges.len(),
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn a_page_of_seven_hosts_comes_from_one_over_one_session() {
    let page = Page::new(builtin_experiments::page("mineki").unwrap());
    let direct = load(&page, RaceProtocol::Spdy, &through(Accelerator::Off));
    assert_eq!((hosts(&direct).len(), direct.connections), (7, 7));
    for accelerator in [Accelerator::Cold, Accelerator::Warm] {
        let load = load(&page, RaceProtocol::Spdy, &through(accelerator));
        assert_eq!((hosts(&load).len(), load.connections), (1, 1));
        assert!(
            load.load_ms < direct.load_ms,
            "{accelerator}: {} ms",
            load.load_ms
        );
    }
}

#[test]
fn urls_as_in_the_paper_fetch_the_same_with_smaller_requests() {
    for name in ["mineki", "portal"] {
        let page = Page::new(builtin_experiments::page(name).unwrap());
        for protocol in [RaceProtocol::Http, RaceProtocol::Spdy, RaceProtocol::H2] {
            let [ours, paper] = [false, true].map(|paper_urls| {
                let options = Options {
                    paper_urls,
                    ..through(Accelerator::Warm)
                };
                load(&page, protocol, &options)
            });
            assert_eq!(hosts(&paper).len(), 1, "{name}, {protocol}");
            assert_eq!(paper.waterfall.len(), ours.waterfall.len());
            let mut urls = paper.waterfall.iter().map(|row| &row.url);
            assert!(urls.all(|url| !url.contains("/.spdy/")), "{name}");
            let [paper, ours] = [paper, ours].map(|load| load.request_header_bytes);
            assert!(paper < ours, "{name}, {protocol}: {paper} and {ours} bytes");
        }
    }
}
