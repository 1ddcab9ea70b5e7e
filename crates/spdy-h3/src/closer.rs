//! Closes a connection because of a peer's fault, and remembers the fault: QUIC reports to the streams only that this side closed
//! the connection.

use std::sync::{Arc, OnceLock};

use crate::fault::Fault;

/// A handle for all code that may detect a fault of the whole connection. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Closer {
    connection: quinn::Connection,
    cause: Arc<OnceLock<Fault>>,
}

impl From<quinn::Connection> for Closer {
    fn from(connection: quinn::Connection) -> Self {
        let cause = Arc::default();
        Self { connection, cause }
    }
}

impl Closer {
    /// Closes the connection if `fault` affects the whole connection.
    pub(crate) fn close_for(&self, fault: &Fault) {
        if let Fault::Connection(code, reason) = fault {
            let _ = self.cause.set(fault.clone()); // the first fault is the cause
            self.connection.close(code.wire(), reason.as_bytes());
        }
    }

    /// The fault for which it was closed.
    pub(crate) fn cause(&self) -> Option<&Fault> {
        self.cause.get()
    }

    /// The cause of `fault`, if `fault` only states that this side closed the connection; otherwise `fault`.
    pub(crate) fn explain<'a>(&'a self, fault: &'a Fault) -> &'a Fault {
        match fault {
            Fault::Lost(quinn::ConnectionError::LocallyClosed) => self.cause().unwrap_or(fault),
            _ => fault,
        }
    }
}
