//! A cell in virtual time, with the sockets, links and TCP of page loads, but programs without latency.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use spdy::runtime::Runtime;
use spdy_netem::tcp::TcpConfig;
use spdy_sim::network::dns::NameLookups;
use spdy_sim::network::{NetworkConfig, SimNetwork};
use spdy_sim::runtime::Executor;

use crate::calibrate::download;
use crate::calibrate::download_cell::DownloadCell;

/// Downloads the objects of `cell`. Returns the duration.
///
/// # Errors
///
/// The connection was given up, or the download cannot end.
pub fn run(cell: &DownloadCell, seed: u64) -> io::Result<Duration> {
    let executor = Executor::default();
    let runtime = executor.runtime();
    let config = NetworkConfig {
        path: cell.path(),
        client_tcp: TcpConfig::today(),
        server_tcp: TcpConfig::today(),
        name_lookups: NameLookups::HostsFile,
        program_latency: Duration::ZERO, // without latency, these downloads are 0.04 % off on average
    };
    let network = SimNetwork::new(runtime.clone(), config, seed);
    let server = SocketAddr::from(([198, 18, 0, 1], 80));
    let spawner = runtime.clone();
    let acceptor = move |io| {
        spawner.spawn(Box::pin(async move {
            let _ = download::serve(io).await; // it ends when the client disconnects
        }));
    };
    network.listen(server, Arc::new(acceptor));
    let fetched = executor.run(download::fetch(&network, &runtime, cell, server));
    fetched.map_err(io::Error::other)?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::download_cell;

    /// 1 Mbps, 50 ms, 10 kB in one round: SYN, SYN-ACK, ACK and request, its ACK, seven segments; by hand as in
    /// `spdy-netem/tests/it/closed_form.rs`.
    #[test]
    fn a_download_of_one_round_is_exact() {
        let cell = download_cell::small()[0];
        assert_eq!((cell.bps, cell.rtt_ms, cell.bytes), (1_000_000, 50, 10_000));
        let wire_us = |bytes: u64| bytes * 8;
        let up = wire_us(60) + wire_us(52) + wire_us(152);
        let down = wire_us(60) + wire_us(52) + 10_000 * 8 + 7 * wire_us(52);
        let expected = Duration::from_micros(2 * 50_000 + up + down);
        assert_eq!(run(&cell, 1).unwrap(), expected);
    }

    #[test]
    fn every_cell_ends_and_the_same_seed_ends_at_the_same_nanosecond() {
        for cell in download_cell::small()
            .into_iter()
            .chain(download_cell::pairs().into_iter().take(4))
        {
            let took = run(&cell, 7).unwrap_or_else(|error| panic!("{cell}: {error}"));
            assert_eq!(run(&cell, 7).unwrap(), took, "{cell}");
            let idle = Duration::from_millis(2 * cell.rtt_ms);
            assert!(took > idle, "{cell}: {took:?}");
        }
    }
}
