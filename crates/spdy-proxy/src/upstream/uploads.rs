//! Limits how many connections to one origin are used by long request bodies.
//!
//! A body that is complete before its origin is contacted uses a connection only for the transfer. One that is longer than its
//! [beginning](crate::body::request_body::BUFFERED_BYTES) arrives at its client's pace, and uses a connection for as long as the client
//! sends. Enough of them could use all connections, and no other request would be served.

use spdy::body::Body;
use spdy_client::origin::Origin;
use spdy_net::body_wrapper::with_guard;
use tokio::sync::OwnedSemaphorePermit;

use crate::upstream::concurrency::KeyedSemaphore;

/// The permits of long bodies, by origin.
#[derive(Debug)]
pub(crate) struct UploadLimit {
    most: usize,
    permits: KeyedSemaphore<Origin>,
}

impl UploadLimit {
    /// `most` at a time to one origin.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            permits: KeyedSemaphore::default(),
        }
    }

    /// A permit for a body to `origin`, once one is free.
    pub(crate) async fn acquire(&self, origin: &Origin) -> OwnedSemaphorePermit {
        self.permits.acquire(origin.clone(), self.most).await
    }
}

/// A body that holds a permit until it ends.
pub(crate) fn with_permit(body: Body, permit: OwnedSemaphorePermit) -> Body {
    with_guard(body, permit, |_| {})
}
