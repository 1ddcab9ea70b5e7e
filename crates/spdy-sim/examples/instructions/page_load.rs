//! Loads of shipped pages in virtual time: client, servers, TLS and the network's packets.

use spdy_page::builtin;
use spdy_page::replica::Replica;
use spdy_sim::load::{HostLayout, load};
use spdy_sim::options::{Options, RaceProtocol};
use spdy_sim::race::RaceNetwork;

use crate::HotPath;

pub(crate) fn portal(protocol: RaceProtocol) -> HotPath {
    path(&builtin::portal(), protocol)
}

pub(crate) fn flags(protocol: RaceProtocol) -> HotPath {
    path(&builtin::flags(), protocol)
}

fn path(replica: &Replica, protocol: RaceProtocol) -> HotPath {
    let network = RaceNetwork::parse("down=5mbit,up=1mbit,rtt=100ms").expect("a valid network");
    let (options, page) = (Options::default(), HostLayout::Recorded.page(replica));
    let config = network.config(&options);
    HotPath::new(1, "load", move || {
        let load = load(&page, protocol, &network.name, &config, &options, 1);
        assert_eq!(load.failures, Vec::<String>::new());
    })
}
