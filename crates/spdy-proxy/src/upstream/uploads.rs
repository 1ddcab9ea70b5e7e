//! Long bodies on their way to origins: of all connections to one origin they hold so many and no more.
//!
//! A body that is here before its origin is asked holds a connection for as long as that takes. One that is longer than its
//! [beginning](crate::body::request_body::BUFFERED_BYTES) comes at its client's pace, and holds a connection for as long as the client likes to
//! make it: with as many of them as there are connections nobody else would be served.

use spdy::body::Body;
use spdy_client::origin::Origin;
use tokio::sync::OwnedSemaphorePermit;

use crate::body::guarded_body::with_guard;
use crate::upstream::concurrency::KeyedSemaphore;

/// The seats of long bodies, by origin.
#[derive(Debug)]
pub(crate) struct UploadLimit {
    most: usize,
    seats: KeyedSemaphore<Origin>,
}

impl UploadLimit {
    /// So many at a time to one origin.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            seats: KeyedSemaphore::default(),
        }
    }

    /// A seat for a body to `origin`, once one is free.
    pub(crate) async fn acquire(&self, origin: &Origin) -> OwnedSemaphorePermit {
        self.seats.acquire(origin.clone(), self.most).await
    }
}

/// A body that has a seat until it ends.
pub(crate) fn with_permit(body: Body, seat: OwnedSemaphorePermit) -> Body {
    with_guard(body, seat, |_| {})
}
