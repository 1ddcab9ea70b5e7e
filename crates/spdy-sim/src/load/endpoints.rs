//! The client and the server of one load: the released ones, with the options of a race.
//!
//! No timeout depends on wall time, and no exchange is cancelled because a link is slow: a load may take an hour. Idle connections
//! are closed as real clients and servers close them.

use std::time::{Duration, SystemTime};

use spdy::client::PushLimits;
use spdy_client::config::Config;
use spdy_net::protocol::Protocol;
use spdy_net::quic::{Congestion, QuicOptions};
use spdy_net::serve::ServerOptions;
use spdy_net::wall_clock::WallClock;
use spdy_netem::tcp::{CongestionControl, TcpConfig};
use spdy_server::serve::ServeConfig;

use crate::load::tls;
use crate::options::{Options, Push, RaceProtocol, Scheduler};
use crate::runtime::WALL_EPOCH;
use crate::seed;

/// Longer than the maximum duration of a load, and of a visit of several pages.
const NO_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// QUIC of one end, configured like the TCP of the same end as far as possible: the congestion control, and the initial window.
pub(crate) fn quic(tcp: &TcpConfig, seed: u64) -> QuicOptions {
    let mut options = QuicOptions::default();
    options.congestion = match tcp.congestion {
        CongestionControl::Cubic => Congestion::Cubic,
        CongestionControl::Reno => Congestion::NewReno,
    };
    options.initial_window = tcp.initial_window_segments;
    options.seed = Some(seed::derive(seed, "quic"));
    options
}

/// The seed of the client with this number. With the same random numbers, connections of two clients to one server would have the same
/// IDs.
pub(crate) fn client_seed(seed: u64, number: usize) -> u64 {
    match number {
        0 => seed,
        _ => seed::derive(seed, &format!("client {number}")),
    }
}

/// The client of one load.
pub(crate) fn client(protocol: RaceProtocol, options: &Options) -> Config {
    let mut client = Config::default();
    client.protocols = vec![protocol.wire_protocol()];
    client.plain_protocol = protocol.wire_protocol();
    client.http1_connections = options.http1_connections;
    client.assumes_http1 = options.scheduler != Scheduler::None;
    client.tls = protocol.is_secure().then(|| tls::client(protocol, options));
    client.ip_pooling = options.ip_pooling;
    client.connection.max_frame_bytes = options.data_frame_bytes;
    client.connection.frame_per_write = options.scheduler != Scheduler::None;
    client.connection.write_timeout = None;
    let spdy = &mut client.connection.spdy;
    spdy.compression = options.spdy_compression;
    spdy.compression_window_bits = options.spdy_window_bits;
    spdy.frame_timeout = NO_TIMEOUT;
    // Measured: where an uplink carries 375 kbit/s, 16 more bytes per request are visible.
    spdy.window_update_per_stream = false;
    spdy.pushes = pushes(options.push);
    client.connect_timeout = None;
    client.head_timeout = None;
    client.body_timeout = None;
    client.dns_ttl = NO_TIMEOUT;
    client.close_timeout = NO_TIMEOUT;
    client
}

/// The client's limits for pushes with `push`.
fn pushes(push: Push) -> Option<PushLimits> {
    let mut limits = PushLimits::default();
    limits.claim_timeout = NO_TIMEOUT;
    match push {
        Push::No => None,
        Push::ByGraph => Some(limits),
        Push::All => {
            limits.streams = u32::MAX >> 1;
            limits.bytes = usize::MAX;
            Some(limits)
        }
    }
}

/// The configuration of servers that speak `spoken` in a load by `protocol`.
pub(crate) fn server(protocol: RaceProtocol, spoken: Protocol, options: &Options) -> ServeConfig {
    ServeConfig {
        protocols: vec![spoken],
        tls: protocol
            .is_secure()
            .then(|| tls::server(&[spoken], options)),
        options: {
            let mut server = ServerOptions::default();
            server.max_streams = options.max_concurrent_streams;
            server.data_frame_bytes = options.data_frame_bytes as usize;
            server.timeouts.handshake_timeout = NO_TIMEOUT;
            server.timeouts.write_timeout = NO_TIMEOUT;
            server.timeouts.read_timeout = NO_TIMEOUT;
            server.timeouts.min_rate = 0;
            server.spdy.frame_timeout = NO_TIMEOUT;
            server.spdy.compression = options.spdy_compression;
            server.spdy.compression_window_bits = options.spdy_window_bits;
            server
        },
        wall_clock: WallClock::FromEpoch(SystemTime::UNIX_EPOCH + WALL_EPOCH),
        think_time_scale: options.think_time_scale,
        ..ServeConfig::default()
    }
}

/// The configuration of servers behind an accelerator, with TLS if `secure`: they offer the protocols that `spdy-proxy` requests.
#[cfg(feature = "accelerator")]
pub(crate) fn origin(secure: bool, calendar: WallClock, options: &Options) -> ServeConfig {
    let spoken = match secure {
        true => vec![Protocol::Http2, Protocol::Http1],
        false => vec![Protocol::Http1],
    };
    ServeConfig {
        tls: secure.then(|| tls::server(&spoken, options)),
        protocols: spoken,
        wall_clock: calendar,
        ..server(RaceProtocol::Http, Protocol::Http1, options)
    }
}
