//! Implements quinn's runtime with ours: its clock, timers and tasks, so that QUIC also runs in virtual time.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant as SystemInstant;

use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_clock::Instant;

/// Our runtime as an implementation of quinn's. quinn only compares and adds instants, so any fixed origin is sufficient.
#[derive(Debug)]
pub(super) struct QuicRuntime {
    runtime: SharedRuntime,
    origin: SystemInstant,
}

impl QuicRuntime {
    pub(super) fn shared(runtime: &SharedRuntime) -> Arc<Self> {
        Arc::new(Self {
            runtime: runtime.clone(),
            origin: SystemInstant::now(),
        })
    }
}

#[cfg(feature = "qlog")]
impl QuicRuntime {
    /// The start of the run, as an instant of quinn.
    pub(super) fn origin(&self) -> SystemInstant {
        self.origin
    }
}

impl quinn::Runtime for QuicRuntime {
    fn new_timer(&self, at: SystemInstant) -> Pin<Box<dyn quinn::AsyncTimer>> {
        let mut timer = QuicTimer {
            runtime: self.runtime.clone(),
            origin: self.origin,
            sleep: Box::pin(std::future::pending()),
        };
        timer.set_to(at);
        Box::pin(timer)
    }

    fn spawn(&self, task: Pin<Box<dyn Future<Output = ()> + Send>>) {
        self.runtime.spawn(task);
    }

    fn wrap_udp_socket(
        &self,
        _: std::net::UdpSocket,
    ) -> io::Result<Arc<dyn quinn::AsyncUdpSocket>> {
        let reason = "sockets come from the network, not from the runtime";
        Err(io::Error::new(io::ErrorKind::Unsupported, reason))
    }

    fn now(&self) -> SystemInstant {
        self.origin + (self.runtime.now() - Instant::ZERO)
    }
}

struct QuicTimer {
    runtime: SharedRuntime,
    origin: SystemInstant,
    sleep: BoxFuture<()>,
}

impl QuicTimer {
    fn set_to(&mut self, at: SystemInstant) {
        let at = Instant::ZERO + at.saturating_duration_since(self.origin);
        self.sleep = self.runtime.sleep_until(at);
    }
}

impl quinn::AsyncTimer for QuicTimer {
    fn reset(mut self: Pin<&mut Self>, at: SystemInstant) {
        self.set_to(at);
    }

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.sleep.as_mut().poll(cx)
    }
}

impl fmt::Debug for QuicTimer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RunTimer")
    }
}
