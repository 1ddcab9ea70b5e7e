//! Every limit and choice of a session, with its default. (Contract)

use std::sync::Arc;
use std::time::Duration;

use spdy_frame::compress::Compression;
use spdy_frame::version::Version;

/// Which end of the connection this is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role { Client, Server }

/// Limits and choices; `Config::new(role, version)` has the defaults.
#[derive(Clone)]
pub struct Config {
    pub role: Role,
    pub version: Version,
    pub compression: Compression,
    /// What the peer may have open at once (sent in SETTINGS).
    pub max_concurrent_streams: u32,
    /// Receive window of a new stream, bytes (sent in SETTINGS when not 65,536).
    pub initial_window_bytes: u32,
    /// Receive window of the session, bytes (SPDY/3.1).
    pub session_window_bytes: u32,
    /// Largest DATA payload written at once, bytes.
    pub data_frame_bytes: usize,
    /// Bytes of DATA a stream may hold unsent before `send_capacity` is 0.
    pub send_buffer_bytes: usize,
    /// Streams we assume we may open before SETTINGS says.
    pub assumed_peer_streams: u32,
    /// `false`: neither obey nor enforce windows (moby/spdystream and Kubernetes have none).
    pub flow_control: bool,
    /// PING when nothing was heard for so long; `None` never.
    pub keepalive_interval: Option<Duration>,
    pub keepalive_timeout: Duration,
    /// Sees every frame in both directions.
    pub observer: Option<Arc<dyn crate::observe::Observe>>,
    // ... header limits, control queue limits, flood budgets, frame deadline: one field each
}
impl Config {
    pub fn new(role: Role, version: Version) -> Self { let _ = (role, version); todo!() }
}
