//! A network in real time: the client's host, the servers' host, and the link between them.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime};

use nix::sys::eventfd::{EfdFlags, EventFd};
use spdy_netem::path::PathConfig;

use crate::capture::Capture;
use crate::error::RealTimeError;
use crate::host::{CLIENT, Host, HostConfig, SERVER};
use crate::link_thread::{LinkCommand, LinkThread};
use crate::stats::LinkStats;

/// Settings of a network.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RealNetworkConfig {
    /// The initial settings of the link.
    pub path: PathConfig,
    /// Determines all random loss and jitter.
    pub seed: u64,
    /// Congestion control of both hosts' connections, by the kernel's name.
    pub congestion: String,
    /// Initial window of both hosts in segments, if not the kernel's.
    pub initial_window: Option<u32>,
}

impl RealNetworkConfig {
    /// `path` with seed 1, cubic, and the kernel's initial window.
    #[must_use]
    pub fn new(path: PathConfig) -> Self {
        Self {
            path,
            seed: 1,
            congestion: "cubic".to_owned(),
            initial_window: None,
        }
    }
}

/// Two hosts and a link. Dropping it removes the link; programs that still run in a host then have no network.
#[derive(Debug)]
pub struct RealNetwork {
    /// The host for the client's sockets.
    pub client: Host,
    /// The host for the servers' sockets: it has every address except the client's.
    pub server: Host,
    orders: mpsc::Sender<LinkCommand>,
    wake_fd: Arc<EventFd>,
    wire: Option<thread::JoinHandle<std::io::Result<()>>>,
    missed_at_begin: [u64; 2],
}

/// Sets the counts of a link to zero, from any thread.
#[derive(Clone, Debug)]
pub struct CountRestart {
    orders: mpsc::Sender<LinkCommand>,
    wake_fd: Arc<EventFd>,
}

impl CountRestart {
    /// Sets all counts to zero but those of missed packets, which are errors of the whole run. The link goes on; if its thread has
    /// ended, [`measure`](RealNetwork::measure) reports that.
    pub fn restart(&self) {
        let _ = self.orders.send(LinkCommand::RestartCounts);
        let _ = self.wake_fd.write(1);
    }
}

impl RealNetwork {
    /// Creates the network. The process must be in an [enclosure](crate::namespaces), or be root.
    ///
    /// # Errors
    ///
    /// The system allows no namespaces, devices or threads, or does not have this congestion control.
    pub fn start(config: &RealNetworkConfig) -> Result<Self, RealTimeError> {
        let host = |address, peer| HostConfig {
            address,
            peer,
            congestion: config.congestion.clone(),
            initial_window: config.initial_window,
        };
        let (client, client_device) = Host::start("client", host(CLIENT, None))?;
        let (server, server_device) = Host::start("server", host(SERVER, Some(CLIENT)))?;
        let start = |what| move |source| RealTimeError::Start { what, source };
        let bell = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)
            .map_err(|error| start("an eventfd")(error.into()))?;
        let bell = Arc::new(bell);
        let (orders, inbox) = mpsc::channel();
        let wire = LinkThread::new(
            client_device,
            server_device,
            inbox,
            bell.clone(),
            &config.path,
            config.seed,
        );
        let wire = thread::Builder::new()
            .name("link".to_owned())
            .spawn(move || wire.run())
            .map_err(start("the link's thread"))?;
        Ok(Self {
            client,
            server,
            orders,
            wake_fd: bell,
            wire: Some(wire),
            missed_at_begin: [0; 2],
        })
    }

    /// Begins a run: an idle link with these settings, and all counts at zero. Packets in flight are dropped, so wait until the
    /// link is [quiet](Self::wait_until_quiet) first.
    ///
    /// # Errors
    ///
    /// The link's thread has ended.
    pub fn begin(&mut self, path: &PathConfig, seed: u64) -> Result<(), RealTimeError> {
        self.missed_at_begin = self.device_drops();
        let config = path.clone();
        self.order(LinkCommand::Begin { config, seed })
    }

    /// For the client's thread: sets the counts of this run to zero while it runs.
    #[must_use]
    pub fn count_restart(&self) -> CountRestart {
        CountRestart {
            orders: self.orders.clone(),
            wake_fd: self.wake_fd.clone(),
        }
    }

    /// The statistics since the last [`begin`](Self::begin) or [`restart`](CountRestart::restart).
    ///
    /// # Errors
    ///
    /// The link's thread has ended.
    pub fn measure(&mut self) -> Result<LinkStats, RealTimeError> {
        let (sender, receiver) = mpsc::channel();
        self.order(LinkCommand::Measure(sender))?;
        let Ok(mut measured) = receiver.recv() else {
            return Err(self.ended());
        };
        let [up, down] = self.device_drops();
        measured.up.missed = up - self.missed_at_begin[0];
        measured.down.missed = down - self.missed_at_begin[1];
        Ok(measured)
    }

    /// Starts capturing the packets of this run, until they and their metadata use `limit_bytes`. The next [`begin`](Self::begin)
    /// ends the capture.
    ///
    /// # Errors
    ///
    /// The link's thread has ended.
    pub fn start_capture(&mut self, limit_bytes: usize) -> Result<(), RealTimeError> {
        self.order(LinkCommand::StartCapture(limit_bytes))
    }

    /// The packets captured since [`start_capture`](Self::start_capture), and the wall-clock time at the origin of its instants.
    ///
    /// # Errors
    ///
    /// The link's thread has ended.
    pub fn end_capture(&mut self) -> Result<(Capture, SystemTime), RealTimeError> {
        let (sender, receiver) = mpsc::channel();
        self.order(LinkCommand::EndCapture(sender))?;
        receiver.recv().map_err(|_| self.ended())
    }

    /// Waits until no packet is in flight and none was sent for `silence`; `false` if that takes longer than `most`.
    ///
    /// # Errors
    ///
    /// The link's thread has ended.
    pub fn wait_until_quiet(
        &mut self,
        silence: Duration,
        most: Duration,
    ) -> Result<bool, RealTimeError> {
        let (sender, receiver) = mpsc::channel();
        self.order(LinkCommand::Quiet(silence, sender))?;
        match receiver.recv_timeout(most) {
            Ok(()) => Ok(true),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(false),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    /// Packets that each host's device has dropped so far.
    fn device_drops(&self) -> [u64; 2] {
        [&self.client, &self.server].map(Host::missed_packets)
    }

    fn order(&mut self, order: LinkCommand) -> Result<(), RealTimeError> {
        let sent = self.orders.send(order).is_ok() && self.wake_fd.write(1).is_ok();
        if sent { Ok(()) } else { Err(self.ended()) }
    }

    fn ended(&mut self) -> RealTimeError {
        let message = match self.wire.take().map(thread::JoinHandle::join) {
            Some(Ok(Err(error))) => error.to_string(),
            Some(Err(_)) => "its thread panicked".to_owned(),
            _ => "its thread has ended".to_owned(),
        };
        RealTimeError::LinkThreadEnded(message)
    }
}

impl Drop for RealNetwork {
    fn drop(&mut self) {
        if self.order(LinkCommand::Stop).is_ok()
            && let Some(wire) = self.wire.take()
        {
            let _ = wire.join(); // the result no longer matters
        }
    }
}
