//! Closes a connection for a peer's fault, and remembers the fault: QUIC only reports to the streams that this side closed the connection.

use std::sync::{Arc, OnceLock};

use crate::fault::Fault;

/// The connection, for everything that may find a fault that ends all of it. Clones are the same.
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
    /// Closes the connection if `fault` is one of all of it.
    pub(crate) fn close_for(&self, fault: &Fault) {
        if let Fault::Connection(code, reason) = fault {
            let _ = self.cause.set(fault.clone()); // the first is what ended it
            self.connection.close(code.wire(), reason.as_bytes());
        }
    }

    /// The fault that it was closed for.
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
