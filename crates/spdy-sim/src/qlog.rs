//! The qlogs of a load's QUIC connections, in virtual time.

use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;
use spdy_client::QlogFiles;

/// The qlog of one QUIC connection, as its client saw it.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Qlog {
    /// Number of the connection among those of its load, from 0 in the order of opening.
    pub number: usize,
    /// Its host.
    pub host: String,
    /// The log in JSON-SEQ (`.sqlog`). Times are virtual milliseconds from the start of the run.
    pub bytes: Vec<u8>,
}

/// Collects qlogs in memory. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct QlogRecorder(Arc<Mutex<Vec<Qlog>>>);

impl QlogRecorder {
    /// The files of this recorder, for a client.
    pub(crate) fn files(&self) -> QlogFiles {
        let recorder = self.clone();
        QlogFiles::new(move |_, host| {
            let mut logs = recorder.0.lock();
            let number = logs.len();
            logs.push(Qlog {
                number,
                host: host.to_owned(),
                bytes: Vec::new(),
            });
            Some(Box::new(QlogOutput {
                logs: recorder.0.clone(),
                number,
            }))
        })
    }

    /// Takes all logs.
    pub(crate) fn take(&self) -> Vec<Qlog> {
        std::mem::take(&mut self.0.lock())
    }
}

/// The output of one log.
struct QlogOutput {
    logs: Arc<Mutex<Vec<Qlog>>>,
    number: usize,
}

impl Write for QlogOutput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // After the logs were taken, nothing is logged.
        if let Some(log) = self.logs.lock().get_mut(self.number) {
            log.bytes.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
