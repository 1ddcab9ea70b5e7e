//! Calls of gRPC to origins: over HTTP/2 only, with streams that may be silent, on separate connections.

use std::time::Duration;

use spdy_client::client::{Client, Config as ClientConfig};
use spdy_client::error::{ConnectFailure, Error};
use spdy_net::protocol::Protocol;

use crate::upstream::origin_backoff::OriginBackoff;

/// Marks a request as a call, in its extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GrpcCall;

/// The client of calls to an origin. Calls have their own backoff: a client that makes calls fail does not stop other requests.
#[derive(Debug)]
pub(crate) struct CallClient {
    pub(super) client: Client,
    pub(super) backoff: OriginBackoff,
}

/// Whether a call that failed with `error` shows that the origin fails. A server without HTTP/2 may still respond to other requests.
pub(super) fn is_failure(error: &Error) -> bool {
    !matches!(
        error,
        Error::Connect {
            failure: ConnectFailure::NoProtocol | ConnectFailure::Protocol,
            ..
        }
    )
}

/// Maximum number of connections for calls to one origin. One more is opened only while the others are full.
const MAX_CONNECTIONS: usize = 20;
/// Maximum number of concurrent calls on one of them, if the origin allows that many. If a connection ends, no more calls than these end
/// with it.
const MAX_STREAMS: usize = 100;
/// Maximum number of calls in progress to one origin whose clients still send. The rest is for calls whose request is complete.
pub(super) const MAX_SENDING_CALLS: usize = MAX_CONNECTIONS * MAX_STREAMS / 4 * 3;
/// How long a call waits for its first message before it begins at the origin, which may respond before there is one.
pub(crate) const FIRST_MESSAGE_DELAY: Duration = Duration::from_millis(200);
/// Bytes of one response that may arrive before they are read: the window of gRPC's own clients.
const STREAM_WINDOW_BYTES: u32 = 64 * 1024;

/// Changes the settings of a client for other requests into those of a client for calls.
pub(super) fn configure(client: &mut ClientConfig) {
    client.protocols = vec![Protocol::Http2];
    client.plain_protocol = Protocol::Http2;
    // `body/call_streams.rs` has a timeout for both directions.
    client.head_timeout = None;
    client.body_timeout = None;
    client.multiplexed_connections = MAX_CONNECTIONS;
    client.connection.stream_window_bytes = STREAM_WINDOW_BYTES;
    client.connection.max_streams = Some(MAX_STREAMS);
    client.connection.session_window_bytes = Some(MAX_STREAMS as u32 * STREAM_WINDOW_BYTES);
}
