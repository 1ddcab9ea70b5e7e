//! The access log that connections share, and that a reload can replace.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::RwLock;

use crate::telemetry::access_log::AccessLog;

/// An [`AccessLog`] that can be replaced, or none. Clones share it.
#[derive(Clone, Default)]
pub struct SharedAccessLog(Arc<State>);

#[derive(Default)]
struct State {
    /// Whether there is a log, so that a request without one takes no lock.
    is_on: AtomicBool,
    log: RwLock<Option<AccessLog>>,
}

impl fmt::Debug for SharedAccessLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_on = self.0.is_on.load(Ordering::Relaxed);
        f.debug_struct("SharedAccessLog")
            .field("is_on", &is_on)
            .finish()
    }
}

impl SharedAccessLog {
    /// Reports requests that begin from now on to `log`.
    pub fn replace(&self, log: Option<AccessLog>) {
        let mut current = self.0.log.write();
        self.0.is_on.store(log.is_some(), Ordering::Release);
        *current = log;
    }

    /// The log for a request that begins now.
    pub(crate) fn current(&self) -> Option<AccessLog> {
        match self.0.is_on.load(Ordering::Acquire) {
            true => self.0.log.read().clone(),
            false => None,
        }
    }
}

impl From<Option<AccessLog>> for SharedAccessLog {
    fn from(log: Option<AccessLog>) -> Self {
        let shared = Self::default();
        shared.replace(log);
        shared
    }
}
