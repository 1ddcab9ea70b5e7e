//! The memory of windows, shared by listeners.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use spdy::runtime::SharedRuntime;
use spdy_clock::Instant;

use super::congestion_socket::CongestionSocket;
use super::memory::{WindowMemory, WindowSample};
use super::sampled_stream::SampledStream;
use crate::network::BoxIo;

/// A [`WindowMemory`] and its clock. Clones share both.
#[derive(Clone)]
pub struct RememberedWindows(Arc<Shared>);

struct Shared {
    runtime: SharedRuntime,
    memory: Mutex<WindowMemory>,
}

impl RememberedWindows {
    /// An empty memory.
    #[must_use]
    pub fn new(runtime: SharedRuntime) -> Self {
        Self(Arc::new(Shared {
            runtime,
            memory: Mutex::default(),
        }))
    }

    /// As [`WindowMemory::initial_window`].
    #[must_use]
    pub fn initial_window(&self, client: IpAddr) -> u32 {
        self.0.memory.lock().initial_window(self.now(), client)
    }

    /// As [`WindowMemory::record`].
    pub fn record(&self, client: IpAddr, sample: WindowSample) {
        self.0.memory.lock().record(self.now(), client, sample);
    }

    /// Sets the initial window of a connection that was just accepted, if that makes it larger, and records its windows as long as it exists.
    ///
    /// The initial window of TCP stays the system's, unless a BPF program handles the socket option TCP_BPF_IW (Linux).
    #[must_use]
    pub fn start(&self, stream: impl CongestionSocket + 'static, client: IpAddr) -> BoxIo {
        let packets = self.initial_window(client);
        let is_larger = stream
            .window()
            .is_ok_and(|present| packets > present.packets);
        if is_larger && let Err(error) = stream.set_initial_window(packets) {
            tracing::debug!(%error, packets, "cannot set the initial window of a connection");
        }
        Box::new(SampledStream::new(stream, client, self.clone()))
    }

    fn now(&self) -> Instant {
        self.0.runtime.now()
    }
}

impl fmt::Debug for RememberedWindows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RememberedWindows")
            .field(&self.0.memory.lock())
            .finish()
    }
}
