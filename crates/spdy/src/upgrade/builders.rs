//! Builders of sessions for peers behind HTTP/1.1 Upgrade: without flow control and without initial SETTINGS.

use std::time::Duration;

use spdy_frame::version::Version;
use spdy_session::config::{Config, SettingsTiming};

use crate::{client, server};

/// Limit of open streams in each direction. These peers announce no limit and obey none, and a forwarded port needs two streams for
/// each connection; above it, the client gets REFUSED_STREAM.
pub const MAX_STREAMS: u32 = 1000;
/// Streams that a client may reset in ten seconds before the session ends. It is higher than the default of
/// [`FloodLimits`](spdy_session::config::FloodLimits) because `kubectl port-forward` resets the data stream of each connection that
/// it closes.
pub const MAX_RESETS: u32 = 10_000;
/// Idle timeout of a server session without streams, and of any session without traffic in both directions, even with open streams:
/// the kubelet's four hours. A peer that sends anything, even a PING, may leave its input unread without limit: a terminal stopped
/// by Ctrl-S, a forwarded port with an idle program, and a command that writes all day without reading its stdin are all
/// legitimate.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4 * 3600);

/// A client session for these peers: no windows, no initial SETTINGS. It ends when nothing was sent or received for
/// [`IDLE_TIMEOUT`]. With [`keepalive`](client::Builder::keepalive) it ends sooner, and then
/// [`silence_timeout`](Config::silence_timeout) may be `None`.
#[must_use]
pub fn client_builder() -> client::Builder {
    let mut builder = client::Builder::new(Version::V31);
    without_flow_control(builder.config_mut());
    builder
}

/// A server session for these peers: no windows, no initial SETTINGS, and GOAWAY only when the last stream has ended, since they
/// stop reading when they receive it.
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
