//! Measures the rate and the round trip of a link without TCP, by UDP sockets at its two ends.
//!
//! The rate is that of a flood of full packets, by the times at which the kernel received the first and the last. The round trip is
//! that of datagrams of 64 bytes that the other end returns: it includes the cost of waking four threads.
//!
//! Both sockets exist before the first datagram is sent, and until the last has arrived: ICMP responds to a datagram without a
//! socket, which the sender sees as a refused connection. Each measurement has its own ports.

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use spdy_netem::path::PathConfig;
use spdy_tun::cpu::CpuTime;
use spdy_tun::host::{CLIENT, SERVER};
use spdy_tun::limits::{Fault, ValidityLimits};
use spdy_tun::network::{RealNetwork, RealNetworkConfig};
use spdy_tun::stats::LinkStats;
use spdy_tun::timed_socket::TimedSocket;

use crate::calibrate::error::CalibrateError;
use crate::calibrate::real_time::with_cpu_time;
use crate::calibrate::run_link::{QUIET_FOR, QUIET_TIMEOUT, cpu_wait_limit_ms};

/// Maximum relative error of a rate.
pub const MAX_RATE_ERROR: f64 = 0.005;
/// Maximum error of the median round trip, milliseconds.
pub const MAX_RTT_ERROR_MS: f64 = 0.5;

/// Length of the IPv4 and UDP headers, bytes.
const HEADERS_LEN: usize = 28;
/// Payload of the flood's datagrams: full packets.
const FLOOD_LEN: usize = 1_472;
/// Payload of an echo: a packet of 64 bytes.
const ECHO_LEN: usize = 64 - HEADERS_LEN;
/// Timeout for a datagram.
const DATAGRAM_TIMEOUT: Duration = Duration::from_secs(5);
/// Attempts at an invalid measurement.
const ATTEMPTS: u32 = 5;

/// One rate.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Rate {
    /// The configured rate.
    pub configured_bps: u64,
    /// The rate at the receiver, including IP headers.
    pub measured_bps: f64,
    /// The rate that the link's thread measured.
    pub link_bps: Option<f64>,
    /// Received over configured rate, less 1: 0.01 is 1 % too fast.
    pub error: f64,
    /// Duration, seconds.
    pub seconds: f64,
    /// Invalid measurements before this one.
    pub repeated: u32,
    /// Why this one is invalid; empty if it is valid.
    pub faults: Vec<Fault>,
}

/// One round trip.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RoundTrip {
    /// The configured round trip, milliseconds.
    pub configured_ms: f64,
    /// Number of echoes.
    pub echoes: usize,
    /// Median round trip.
    pub p50_ms: f64,
    /// 95th percentile of the round trips.
    pub p95_ms: f64,
    /// Longest round trip.
    pub max_ms: f64,
    /// Median minus the configured round trip and the two serialisation times.
    pub error_ms: f64,
    /// Invalid measurements before this one.
    pub repeated: u32,
    /// Why this one is invalid; empty if it is valid.
    pub faults: Vec<Fault>,
}

/// A link under measurement.
#[derive(Debug)]
pub struct Probe {
    network: RealNetwork,
    limits: ValidityLimits,
}

impl Probe {
    /// Creates one.
    ///
    /// # Errors
    ///
    /// Namespaces or devices are not available.
    pub fn start(limits: ValidityLimits) -> Result<Self, CalibrateError> {
        let path = PathConfig::new(1 << 30, 1 << 30, Duration::ZERO);
        let network = RealNetwork::start(&RealNetworkConfig::new(path))?;
        Ok(Self { network, limits })
    }

    /// Floods a link of `bps` from the server for `time`.
    ///
    /// # Errors
    ///
    /// The link or a socket failed.
    pub fn rate(&mut self, bps: u64, time: Duration) -> Result<Rate, CalibrateError> {
        let path = PathConfig::new(bps, bps, Duration::from_millis(1));
        let mut repeated = 0;
        loop {
            let (server, client) = self.begin(&path)?;
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = stop.clone();
            let flooded = self
                .network
                .server
                .start_job(move || flood(&server, bps, &stopped));
            let receiver = client.try_clone()?;
            let received = self.network.client.run(move || receive(receiver, time));
            stop.store(true, Ordering::Relaxed);
            flooded.recv().expect("the server's job ends")?;
            let measured = self.network.measure()?;
            self.rest()?;
            drop(client);
            let (bytes, seconds) = received?;
            let faults = self.faults(&measured);
            let measured_bps = bytes as f64 * 8.0 / seconds;
            if faults.is_empty() || repeated == ATTEMPTS {
                return Ok(Rate {
                    configured_bps: bps,
                    measured_bps,
                    link_bps: measured.down.busy_bps,
                    error: measured_bps / bps as f64 - 1.0,
                    seconds,
                    repeated,
                    faults,
                });
            }
            repeated += 1;
        }
    }

    /// Sends `echoes` datagrams, one after the other, over a link of 100 Mbps with this round trip.
    ///
    /// # Errors
    ///
    /// The link or a socket failed.
    pub fn round_trip(
        &mut self,
        rtt: Duration,
        echoes: usize,
    ) -> Result<RoundTrip, CalibrateError> {
        const BPS: u64 = 100_000_000;
        let path = PathConfig::new(BPS, BPS, rtt);
        let mut repeated = 0;
        loop {
            let (server, client) = self.begin(&path)?;
            let served = self
                .network
                .server
                .start_job(move || with_cpu_time(|| echo(&server, echoes)));
            let (times, client) = self
                .network
                .client
                .run(move || with_cpu_time(|| time_echoes(&client, echoes)));
            let (echoed, server) = served.recv().expect("the server's job ends");
            echoed?;
            let measured = self.network.measure()?;
            let mut faults = self.faults(&measured);
            let mut times = times?;
            let hosts = client.zip(server).map(|(client, server)| client + server);
            faults.extend(cpu_wait_fault(hosts, cpu_wait_limit_ms(times.iter().sum())));
            times.sort_unstable();
            if faults.is_empty() || repeated == ATTEMPTS {
                let ms = |part: f64| {
                    let at = ((times.len() - 1) as f64 * part).round() as usize; // below the length
                    times[at].as_secs_f64() * 1e3
                };
                let configured_ms = rtt.as_secs_f64() * 1e3;
                let serialised_ms = 2.0 * 64.0 * 8e3 / BPS as f64;
                return Ok(RoundTrip {
                    configured_ms,
                    echoes,
                    p50_ms: ms(0.5),
                    p95_ms: ms(0.95),
                    max_ms: ms(1.0),
                    error_ms: ms(0.5) - configured_ms - serialised_ms,
                    repeated,
                    faults,
                });
            }
            repeated += 1;
        }
    }

    /// Starts a measurement over an idle link: a socket of the server and one of the client, connected to each other.
    fn begin(&mut self, path: &PathConfig) -> Result<(UdpSocket, UdpSocket), CalibrateError> {
        self.rest()?;
        self.network.begin(path, 1)?;
        let server = self.network.server.run(|| UdpSocket::bind((SERVER, 0)))?;
        let client = self.network.client.run(|| UdpSocket::bind((CLIENT, 0)))?;
        for (own, peer) in [(&server, &client), (&client, &server)] {
            own.connect(peer.local_addr()?)?;
            own.set_read_timeout(Some(DATAGRAM_TIMEOUT))?;
        }
        Ok((server, client))
    }

    /// Waits until no packet is in transit.
    fn rest(&mut self) -> Result<(), CalibrateError> {
        if self.network.wait_until_quiet(QUIET_FOR, QUIET_TIMEOUT)? {
            return Ok(());
        }
        let seconds = QUIET_TIMEOUT.as_secs();
        Err(CalibrateError::LinkNotQuiet { seconds })
    }

    /// The limits without those that a flood exceeds on purpose: drops by a device are no fault, because a flood exceeds the rate of
    /// the link.
    fn faults(&self, measured: &LinkStats) -> Vec<Fault> {
        let mut faults = self.limits.faults(measured);
        faults.retain(|fault| !matches!(fault, Fault::Devices { .. }));
        faults
    }
}

/// The fault of hosts that waited for a core longer than `limit_ms`.
fn cpu_wait_fault(ends: Option<CpuTime>, limit_ms: f64) -> Option<Fault> {
    let measured_ms = ends?.waited.as_secs_f64() * 1e3;
    (measured_ms > limit_ms).then_some(Fault::Starved {
        measured_ms,
        limit_ms,
    })
}

/// Sends half more than the link's rate, so that its queue never becomes empty.
fn flood(socket: &UdpSocket, bps: u64, stop: &AtomicBool) -> io::Result<()> {
    let datagram = [0; FLOOD_LEN];
    let gap = Duration::from_secs_f64((FLOOD_LEN + HEADERS_LEN) as f64 * 8.0 / (1.5 * bps as f64));
    let (began, mut sent) = (Instant::now(), 0u32);
    while !stop.load(Ordering::Relaxed) {
        while began + gap * sent <= Instant::now() {
            socket.send(&datagram)?;
            sent += 1;
        }
        std::thread::sleep(gap.clamp(Duration::from_micros(500), Duration::from_millis(20)));
    }
    Ok(())
}

/// Bytes of IP after the first datagram to the last, and the seconds between their arrivals.
fn receive(socket: UdpSocket, time: Duration) -> io::Result<(usize, f64)> {
    let mut socket = TimedSocket::new(socket)?;
    let mut buffer = [0; 2_048];
    let (_, first) = socket.recv(&mut buffer)?;
    let mut bytes = 0;
    loop {
        let (len, at) = socket.recv(&mut buffer)?;
        bytes += len + HEADERS_LEN;
        let elapsed = at.saturating_sub(first);
        if elapsed >= time {
            return Ok((bytes, elapsed.as_secs_f64()));
        }
    }
}

/// Echoes the datagrams of [`time_echoes`].
fn echo(socket: &UdpSocket, count: usize) -> io::Result<()> {
    let mut buffer = [0; 2_048];
    for _ in 0..=count {
        let len = socket.recv(&mut buffer)?;
        socket.send(&buffer[..len])?;
    }
    Ok(())
}

/// Times of `count` round trips, after one that is not counted because of cold caches and threads.
fn time_echoes(socket: &UdpSocket, count: usize) -> io::Result<Vec<Duration>> {
    let mut buffer = [0; 2_048];
    let mut once = || -> io::Result<Duration> {
        let began = Instant::now();
        socket.send(&[0; ECHO_LEN])?;
        socket.recv(&mut buffer)?;
        Ok(began.elapsed())
    };
    once()?;
    (0..count).map(|_| once()).collect()
}
