//! The requests that the servers of a replay received, as a browser sent them.

use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, Method, StatusCode, Uri};
use parking_lot::Mutex;
use spdy_net::protocol::Protocol;
use spdy_server::serve::AccessLogEntry;

/// Maximum number of stored requests.
const MAX_REQUESTS: usize = 10_000;

/// A received request.
#[derive(Clone, Debug)]
pub struct ServedRequest {
    /// When its head had arrived.
    pub at: Instant,
    /// Its method.
    pub method: Method,
    /// Its URI; absolute if the client sent a host.
    pub uri: Uri,
    /// Its header fields.
    pub headers: HeaderMap,
    /// The protocol of its connection.
    pub protocol: Protocol,
    /// True if the connection uses TLS.
    pub secure: bool,
    /// Status of the response.
    pub status: StatusCode,
}

/// The first ten thousand requests, in the order of arrival; clones are the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServedRequests(Arc<Mutex<Received>>);

#[derive(Debug, Default)]
struct Received {
    first: Vec<ServedRequest>,
    count: usize,
}

impl ServedRequests {
    pub(crate) fn add(&self, served: &AccessLogEntry<'_>) {
        let mut received = self.0.lock();
        received.count += 1;
        if received.first.len() < MAX_REQUESTS {
            received.first.push(ServedRequest {
                at: Instant::now(),
                method: served.method.clone(),
                uri: served.uri.clone(),
                headers: served.headers.clone(),
                protocol: served.protocol,
                secure: served.secure,
                status: served.status,
            });
        }
    }

    pub(crate) fn clear(&self) {
        *self.0.lock() = Received::default();
    }

    pub(crate) fn all(&self) -> Vec<ServedRequest> {
        self.0.lock().first.clone()
    }

    /// The number of all requests.
    pub(crate) fn count(&self) -> usize {
        self.0.lock().count
    }
}
