//! A load of a page without a failure.

use spdy_sim::load::{self, Load, Page};
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

/// The load of `page` over 5 Mbit/s down and 1 Mbit/s up with a round trip of 60 ms.
///
/// # Panics
///
/// If a request fails.
pub(crate) fn whole(page: &Page, protocol: RaceProtocol, options: &Options) -> Load {
    let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=60ms").unwrap();
    let config = network.config(options);
    let load = load::load(page, protocol, &network.name, &config, options, 1);
    assert!(load.failures.is_empty(), "{protocol}: {:?}", load.failures);
    load
}
