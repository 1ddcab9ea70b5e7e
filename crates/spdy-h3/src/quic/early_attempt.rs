//! The early data (0-RTT) of a client's connection: sent before the handshake is complete, and accepted or rejected as a whole.
//!
//! ```text
//!   sending --handshake--> accepted ------------------------------> settled
//!               `--------> rejected --the last early stream ends--> settled: streams begin again with the first ID
//! ```

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use parking_lot::Mutex;
use spdy::runtime::SharedRuntime;
use spdy_net_core::latch::Latch;

use crate::code::Code;

/// The state of a connection's early data. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct EarlyAttempt(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Set when the handshake is complete, or failed.
    resolved: Latch,
    /// Set when no stream is left whose early data was rejected: quinn uses its ID again.
    settled: Latch,
}

#[derive(Debug, Default)]
struct State {
    /// Streams that may have sent early data.
    open: usize,
    accepted: Option<bool>,
}

impl EarlyAttempt {
    /// The handshake is complete, and the server has `accepted` the early data; or it failed.
    pub(super) fn resolve(&self, accepted: bool) {
        let is_settled = {
            let mut state = self.0.state.lock();
            state.accepted = Some(accepted);
            accepted || state.open == 0
        };
        self.0.resolved.set();
        if is_settled {
            self.0.settled.set();
        }
    }

    /// To be held while a stream sends early data; `None` when the handshake is over.
    pub(crate) fn begin(&self) -> Option<EarlyStreamGuard> {
        let mut state = self.0.state.lock();
        if state.accepted.is_some() {
            return None;
        }
        state.open += 1;
        Some(EarlyStreamGuard(self.0.clone()))
    }

    /// True if the server has accepted the early data.
    pub(crate) fn is_accepted(&self) -> bool {
        self.0.state.lock().accepted == Some(true)
    }

    /// True if the streams of the connection are no longer those of rejected early data.
    pub(crate) fn is_settled(&self) -> bool {
        self.0.settled.is_set()
    }

    /// Completes when the handshake is complete, or failed.
    pub(crate) fn resolved(&self) -> impl Future<Output = ()> + Send + Unpin + 'static {
        self.0.resolved.wait()
    }

    /// Completes when new streams may be opened, or the connection is lost.
    pub(crate) fn settled(&self) -> impl Future<Output = ()> + Send + Unpin + 'static {
        self.0.settled.wait()
    }
}

/// Guard of a stream that may have sent early data.
#[derive(Debug)]
pub(crate) struct EarlyStreamGuard(Arc<Shared>);

impl Drop for EarlyStreamGuard {
    fn drop(&mut self) {
        let is_settled = {
            let mut state = self.0.state.lock();
            state.open -= 1;
            state.open == 0 && state.accepted == Some(false)
        };
        if is_settled {
            self.0.settled.set();
        }
    }
}

/// The handshake of a connection that already sends early data.
#[derive(Debug)]
pub struct PendingHandshake {
    pub(super) connection: quinn::Connection,
    pub(super) attempt: EarlyAttempt,
}

impl PendingHandshake {
    /// Waits for the handshake, and returns whether it is complete. After `timeout` the connection is closed.
    pub async fn complete_within(self, timeout: Option<Duration>, runtime: &SharedRuntime) -> bool {
        let resolved = self.attempt.resolved();
        match timeout {
            None => resolved.await,
            Some(timeout) => {
                let deadline = runtime.sleep_until(runtime.now() + timeout);
                if let Either::Right(_) = select(resolved, deadline).await {
                    let reason = b"the handshake takes too long";
                    self.connection.close(Code::NO_ERROR.wire(), reason);
                    return false;
                }
            }
        }
        self.connection.close_reason().is_none()
    }
}
