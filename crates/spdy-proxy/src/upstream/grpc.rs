//! Calls of gRPC to origins: over HTTP/2 only, with streams that may be silent, on connections of their own.

use spdy_client::client::Config as ClientConfig;
use spdy_net::protocol::Protocol;

use crate::config::upstream::UpstreamConfig;

/// Marks a request as a call, in its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrpcCall;

/// The most concurrent calls to one origin, if it allows as many on a connection.
const MAX_CALLS: usize = 2048;
/// The most calls in progress to one origin whose clients still send. The rest is for calls whose request is complete.
pub(super) const MAX_SENDING_CALLS: usize = MAX_CALLS / 4 * 3;
/// Bytes of one response that may arrive before they are read: the window of gRPC's own clients.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;

/// Changes the settings of a client for other requests into those of a client for calls.
pub(super) fn configure(client: &mut ClientConfig, config: &UpstreamConfig) {
    client.protocols = vec![Protocol::Http2];
    client.plain_protocol = Protocol::Http2;
    client.head_timeout = Some(config.grpc_idle_timeout());
    client.body_timeout = None; // `body/call_streams.rs` has a timeout for both directions
    client.connection.stream_window_bytes = STREAM_WINDOW_BYTES;
    client.connection.max_streams = Some(MAX_CALLS);
}
