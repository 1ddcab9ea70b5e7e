//! Builders of sessions as peers behind HTTP/1.1 Upgrade need them: without flow control and without a greeting.

use std::time::Duration;

use spdy_frame::version::Version;
use spdy_session::config::{Config, SettingsTiming};

use crate::{client, server};

/// Streams that may be open at once, either way. Peers announce no limit and heed none, and a forwarded
/// port needs two for each connection; beyond, the client gets REFUSED_STREAM.
pub const MAX_STREAMS: u32 = 1000;
/// Streams that a client may reset in ten seconds before the session ends. Over the default of
/// [`FloodLimits`](spdy_session::config::FloodLimits): `kubectl port-forward` resets the data stream of
/// each connection that it closes.
pub const MAX_RESETS: u32 = 10_000;
/// How long a server keeps a session without streams, and either side a session without traffic in either direction, whatever is open:
/// the kubelet's four hours. A peer that sends anything, even a PING, may leave its input unread without limit: a terminal held by Ctrl-S
/// is no attack, a forwarded port with an idle program no fault, and a command that writes all day need not read its stdin.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 3600);

/// A client session as these peers need it: no windows, no greeting. It ends when nothing has crossed for
/// [`IDLE_TIMEOUT`]; with [`keepalive`](client::Builder::keepalive) sooner, and then
/// [`silence_timeout`](Config::silence_timeout) may be `None`.
#[must_use]
pub fn client_builder() -> client::Builder {
    let mut builder = client::Builder::new(Version::V31);
    without_flow_control(builder.config_mut());
    builder
}

/// A server session as these peers need it: no windows, no greeting, and GOAWAY only when the last stream
/// has ended, since they stop reading at it.
#[must_use]
pub fn server_builder() -> server::Builder {
    let mut builder = server::Builder::new(Version::V31);
    let config = builder.config_mut();
    without_flow_control(config);
    config.early_goaway = false;
    config.idle_timeout = Some(IDLE_TIMEOUT);
    builder
}

fn without_flow_control(config: &mut Config) {
    config.flow_control = false;
    config.write_timeout = None;
    config.silence_timeout = Some(IDLE_TIMEOUT);
    config.settings_timing = SettingsTiming::Never;
    config.max_concurrent_streams = MAX_STREAMS;
    config.assumed_peer_streams = MAX_STREAMS;
    config.floods.aborted_streams = MAX_RESETS;
}
