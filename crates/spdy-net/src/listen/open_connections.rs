//! The open connections of a listener: each has a task, and its slot is freed when the task ends.

use std::future::Future;
use std::time::Duration;

use futures_util::FutureExt;
use spdy_net_core::latch::Latch;
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use crate::admission::{AdmissionPermit, Conduct};

/// The connections that are being served. Ended ones are removed by [`reap`](Self::reap).
#[derive(Debug, Default)]
pub(crate) struct OpenConnections(JoinSet<()>);

impl OpenConnections {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Removes those that have ended.
    pub(crate) fn reap(&mut self) {
        while self.0.try_join_next().is_some() {}
    }

    /// Serves a connection. It uses its slot and counts for its address until `serving` ends, which returns the conduct of the
    /// peer.
    pub(crate) fn serve<S>(
        &mut self,
        admitted: AdmissionPermit,
        permit: OwnedSemaphorePermit,
        serving: S,
    ) where
        S: Future<Output: Into<Conduct>> + Send + 'static,
    {
        self.spawn(
            permit,
            serving.map(|conduct| admitted.ended(conduct.into())),
        );
    }

    /// Spawns `serving`, which uses its slot until it ends.
    pub(crate) fn spawn(
        &mut self,
        permit: OwnedSemaphorePermit,
        serving: impl Future<Output = ()> + Send + 'static,
    ) {
        // Not an async block: it would have room for `serving` twice, for as long as the connection is open.
        self.0.spawn(serving.map(|()| drop(permit)));
    }

    /// Waits until all have ended, and then `rest`, but no longer than `patience`. Connections that are still open are then
    /// dropped; `cut_off` is set before that.
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
