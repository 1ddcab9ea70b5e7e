//! Builds quinn's configuration from our options: windows, streams, congestion control, randomness.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use quinn::{
    ConnectionId, ConnectionIdGenerator, EndpointConfig, IdleTimeout, TransportConfig, VarInt,
};
use sha2::{Digest, Sha256};
use spdy_net_core::options::{ClientOptions, Congestion, QuicOptions, ServerOptions};
use spdy_net_core::upload_windows::{GROWN_WINDOW_BYTES, connection_window};

/// Datagram size that every path supports (RFC 9000 §14.1), bytes. There is no MTU discovery; windows are multiples of it.
pub const DATAGRAM_BYTES: u32 = 1200;
/// Limit of body bytes per connection that are sent and not acknowledged, or not sent yet: 170 Mbit/s at 100 ms. A client that
/// reads nothing can make us hold this much, in addition to bodies that are in memory anyway.
pub(crate) const SEND_WINDOW_BYTES: usize = 2 * 1024 * 1024;
/// Limit of a peer's open unidirectional streams: it needs three, and may open another for greasing.
pub(crate) const MAX_UNI_STREAMS: u32 = 8;
/// Limit of concurrent request streams, even if `max_streams` is greater: quinn allocates an entry for each possible stream when
/// the connection is created.
const MAX_REQUEST_STREAMS: u32 = 4096;
/// Timeout of a client for receiving nothing from its server.
const CLIENT_IDLE_TIMEOUT: Duration = Duration::from_secs(180);

/// The configuration with the randomness of the endpoint `name`.
pub(super) fn endpoint_config(options: &QuicOptions, name: fmt::Arguments<'_>) -> EndpointConfig {
    let mut config = EndpointConfig::default();
    let seed = options.seed.map(|seed| {
        let named = Sha256::new_with_prefix(seed.to_be_bytes());
        named.chain_update(name.to_string()).finalize().into()
    });
    config.rng_seed(seed);
    if let Some(seed) = seed {
        config.cid_generator(move || Box::new(SeededIds { seed, next: 0 }));
    }
    config
}

/// Connection IDs of an endpoint with a seed. They have no other effect than on qlogs.
#[derive(Debug)]
struct SeededIds {
    seed: [u8; 32],
    next: u64,
}

impl ConnectionIdGenerator for SeededIds {
    fn generate_cid(&mut self) -> ConnectionId {
        let numbered = Sha256::new_with_prefix(self.seed);
        let digest = numbered.chain_update(self.next.to_be_bytes()).finalize();
        self.next += 1;
        ConnectionId::new(&digest[..self.cid_len()])
    }

    fn cid_len(&self) -> usize {
        8 // quinn's default
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// The ID that a client invents for the server; `number` is that of the connection. It has no other effect than on qlogs, which are
/// the same for the same seed.
pub(super) fn initial_id(options: &QuicOptions, number: u64) -> Option<ConnectionId> {
    let named = Sha256::new_with_prefix(options.seed?.to_be_bytes());
    let digest = named.chain_update(format!("initial {number}")).finalize();
    Some(ConnectionId::new(&digest[..20]))
}

/// Writes the qlog of connection `number` to `host`, if `options` request that. Times are from `origin`.
#[cfg(feature = "qlog")]
pub(super) fn log(
    transport: &mut TransportConfig,
    options: &ClientOptions,
    number: u64,
    host: &str,
    origin: std::time::Instant,
) {
    if let Some(writer) = options.qlog.as_ref().and_then(|it| it.open(number, host)) {
        let mut config = quinn::QlogConfig::default();
        config
            .writer(writer)
            .title(Some(format!("connection to {host}")))
            .start_time(origin);
        transport.qlog_stream(config.into_stream());
    }
}

fn transport(options: &QuicOptions, idle: Duration) -> TransportConfig {
    use quinn::congestion::{CubicConfig, NewRenoConfig};
    let window = u64::from(options.initial_window.max(2)) * u64::from(DATAGRAM_BYTES);
    let mut transport = TransportConfig::default();
    match options.congestion {
        Congestion::Cubic => {
            let mut cubic = CubicConfig::default();
            cubic.initial_window(window);
            transport.congestion_controller_factory(Arc::new(cubic));
        }
        Congestion::NewReno => {
            let mut reno = NewRenoConfig::default();
            reno.initial_window(window);
            transport.congestion_controller_factory(Arc::new(reno));
        }
    }
    transport
        // A timeout that is too long for the wire is disabled.
        .max_idle_timeout(IdleTimeout::try_from(idle).ok())
        // Its probes of up to 1,452 bytes would be sent right after the handshake, and delay the first requests. A larger datagram
        // would save only one percent of the bytes of a long response.
        .mtu_discovery_config(None)
        .max_concurrent_uni_streams(VarInt::from_u32(MAX_UNI_STREAMS))
        // Limited, and shared by urgency, in quinn_shims/send_budget.rs.
        .send_window(u64::from(u32::MAX))
        // Without it a stream that has begun would continue, even if others are more urgent.
        .send_fairness(true)
        .datagram_receive_buffer_size(None);
    transport
}

pub(super) fn client_transport(options: &ClientOptions) -> TransportConfig {
    let mut transport = transport(&options.quic, CLIENT_IDLE_TIMEOUT);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .stream_receive_window(VarInt::from_u32(options.stream_window_bytes))
        .receive_window(VarInt::from_u32(options.session_window_size()))
        .keep_alive_interval(options.keepalive);
    transport
}

pub(super) fn server_transport(options: &ServerOptions) -> TransportConfig {
    let mut transport = transport(&options.quic, options.timeouts.idle_timeout);
    let streams = options.max_streams.min(MAX_REQUEST_STREAMS);
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(streams))
        .stream_receive_window(VarInt::from_u32(GROWN_WINDOW_BYTES))
        .receive_window(VarInt::from_u32(connection_window(streams)))
        .keep_alive_interval(options.keepalive);
    transport
}
