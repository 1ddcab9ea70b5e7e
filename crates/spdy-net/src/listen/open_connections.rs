//! The connections that a listener has let in: each a task, its place given back when it ends.

use std::future::Future;
use std::time::Duration;

use spdy_net_core::latch::Latch;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use crate::admission::{AdmissionPermit, Conduct};

/// Connections that are served. Those that have ended are forgotten with [`reap`](Self::reap).
#[derive(Debug, Default)]
pub(crate) struct OpenConnections(JoinSet<()>);

impl OpenConnections {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Forgets those that have ended.
    pub(crate) fn reap(&mut self) {
        while self.0.try_join_next().is_some() {}
    }

    /// Serves one. It holds its place and counts for its address until `serving` ends, which returns how the peer behaved.
    pub(crate) fn serve<S>(
        &mut self,
        admitted: AdmissionPermit,
        permit: OwnedSemaphorePermit,
        serving: S,
    ) where
        S: Future<Output: Into<Conduct>> + Send + 'static,
    {
        self.spawn(permit, async move {
            let conduct = serving.await.into();
            admitted.ended(conduct);
        });
    }

    /// Has `serving` hold its place until it ends.
    pub(crate) fn spawn(
        &mut self,
        permit: OwnedSemaphorePermit,
        serving: impl Future<Output = ()> + Send + 'static,
    ) {
        self.0.spawn(async move {
            serving.await;
            drop(permit);
        });
    }

    /// Waits until all have ended and `rest` after them, but no longer than `patience`. Connections that are open then are dropped, and
    /// `cut_off` is set before that.
    pub(crate) async fn drain(
        mut self,
        patience: Duration,
        cut_off: &Latch,
        rest: impl Future<Output = ()>,
    ) {
        let drained = async {
            while self.0.join_next().await.is_some() {}
            rest.await;
        };
        if tokio::time::timeout(patience, drained).await.is_err() {
            tracing::warn!(
                connections = self.len(),
                "connections are still open; leaving them"
            );
            if self.len() > 0 {
                cut_off.set();
            }
            self.0.shutdown().await;
        }
    }
}
