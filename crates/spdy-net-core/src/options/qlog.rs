//! Where the qlog of each QUIC connection goes.

use std::fmt;
use std::io::Write;
use std::sync::Arc;

/// The output of one connection's qlog.
pub type QlogWriter = Box<dyn Write + Send + Sync>;

type Open = dyn Fn(u64, &str) -> Option<QlogWriter> + Send + Sync;

/// Opens an output for the qlog of each QUIC connection, in the format JSON-SEQ (`.sqlog`). Clones share it.
#[derive(Clone)]
pub struct QlogFiles(Arc<Open>);

impl QlogFiles {
    /// Calls `open` with the number and the host of each connection, before its handshake. `None` writes no qlog of it. The writer
    /// must not block.
    pub fn new(open: impl Fn(u64, &str) -> Option<QlogWriter> + Send + Sync + 'static) -> Self {
        Self(Arc::new(open))
    }

    /// Opens the output of connection `number` to `host`.
    #[must_use]
    pub fn open(&self, number: u64, host: &str) -> Option<QlogWriter> {
        (self.0)(number, host)
    }
}

impl fmt::Debug for QlogFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QlogFiles")
    }
}
