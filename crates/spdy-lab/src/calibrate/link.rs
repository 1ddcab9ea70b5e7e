//! The link by itself: what it carries, and how long a packet takes there and back, measured by sockets at its ends.
//!
//! The rate is told by a receiver that takes the time of the first and of the last datagram of a flood; the round
//! trip by a datagram of 64 bytes that is sent back. Both so contain what the kernel and the wake-ups of
//! four threads cost.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use spdy_netem::path::PathConfig;
use spdy_tun::cpu::CpuTime;
use spdy_tun::host::{CLIENT, SERVER};
use spdy_tun::limits::{Fault, Limits};
use spdy_tun::measured::Measured;
use spdy_tun::network::{NetworkConfig, RealNetwork};

use crate::calibrate::error::CalibrateError;
use crate::calibrate::lane::starved_limit_ms;
use crate::calibrate::real_time::with_cpu_time;

/// Error of a rate that is allowed, as a part of it.
pub const RATE_BAR: f64 = 0.005;
/// Error of the median round trip that is allowed, milliseconds.
pub const RTT_BAR_MS: f64 = 0.5;

/// Heads of IPv4 and UDP, bytes.
const HEADS_LEN: usize = 28;
/// Payload of the flood's datagrams: full packets.
const FLOOD_LEN: usize = 1_472;
/// Payload of an echo: a packet of 64 bytes.
const ECHO_LEN: usize = 64 - HEADS_LEN;
/// The port of both.
const PORT: u16 = 9;
/// Longest wait for a datagram.
const PATIENCE: Duration = Duration::from_secs(5);
/// The time that a thread may always wait for a core, milliseconds: as with [`starved_limit_ms`].
const LEAST_WAIT_MS: f64 = 4.0;
/// Attempts at a measurement that does not count.
const ATTEMPTS: u32 = 5;

/// One rate.
#[derive(Clone, Debug, Serialize)]
pub struct Rate {
    /// What was asked for.
    pub asked_bps: u64,
    /// What the receiver got, IP headers counted.
    pub got_bps: f64,
    /// What the link's thread says of itself.
    pub link_bps: Option<f64>,
    /// Got over asked, less 1.
    pub error: f64,
    /// For how long, seconds.
    pub seconds: f64,
    /// Measurements that did not count before this one.
    pub repeated: u32,
    /// Why this does not count either; nothing if it does.
    pub faults: Vec<Fault>,
}

/// One round trip.
#[derive(Clone, Debug, Serialize)]
pub struct RoundTrip {
    /// What was asked for, milliseconds.
    pub asked_ms: f64,
    /// How many echoes.
    pub echoes: usize,
    /// Median.
    pub p50_ms: f64,
    /// 95th percentile.
    pub p95_ms: f64,
    /// Longest.
    pub max_ms: f64,
    /// Median less what was asked for and the two serialisations.
    pub error_ms: f64,
    /// Measurements that did not count before this one.
    pub repeated: u32,
    /// Why this does not count either; nothing if it does.
    pub faults: Vec<Fault>,
}

/// A link to be measured.
#[derive(Debug)]
pub struct Probe {
    network: RealNetwork,
    limits: Limits,
}

impl Probe {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// No namespaces, no devices.
    pub fn start(limits: Limits) -> Result<Self, CalibrateError> {
        let path = PathConfig::new(1 << 30, 1 << 30, Duration::ZERO);
        let network = RealNetwork::start(&NetworkConfig::new(path))?;
        Ok(Self { network, limits })
    }

    /// Floods a link of `bps` from the server for `time`.
    ///
    /// # Errors
    ///
    /// The link or a socket broke.
    pub fn rate(&mut self, bps: u64, time: Duration) -> Result<Rate, CalibrateError> {
        let path = PathConfig::new(bps, bps, Duration::from_millis(1));
        let mut repeated = 0;
        loop {
            self.network.begin(&path, 1)?;
            let stop = Arc::new(AtomicBool::new(false));
            let stopped = stop.clone();
            let flood = self.network.server.start_job(move || flood(bps, &stopped));
            let (received, client) = self
                .network
                .client
                .run(move || with_cpu_time(|| receive(time)));
            stop.store(true, Ordering::Relaxed);
            flood.recv().expect("the server's job ends")?;
            let measured = self.network.measure()?;
            let (bytes, seconds) = received?;
            let mut faults = self.faults(&measured);
            // The sender has more to send than the link carries, so only the receiver's own waits change the result.
            faults.extend(starved(
                client,
                (seconds * 1e3 * RATE_BAR / 2.0).max(LEAST_WAIT_MS),
            ));
            let got_bps = bytes as f64 * 8.0 / seconds;
            if faults.is_empty() || repeated == ATTEMPTS {
                return Ok(Rate {
                    asked_bps: bps,
                    got_bps,
                    link_bps: measured.down.busy_bps,
                    error: got_bps / bps as f64 - 1.0,
                    seconds,
                    repeated,
                    faults,
                });
            }
            repeated += 1;
        }
    }

    /// Sends `echoes` datagrams, one after the other, over a link of 100 Mbps and this round trip.
    ///
    /// # Errors
    ///
    /// The link or a socket broke.
    pub fn round_trip(
        &mut self,
        rtt: Duration,
        echoes: usize,
    ) -> Result<RoundTrip, CalibrateError> {
        const BPS: u64 = 100_000_000;
        let path = PathConfig::new(BPS, BPS, rtt);
        let mut repeated = 0;
        loop {
            self.network.begin(&path, 1)?;
            let served = self
                .network
                .server
                .start_job(move || with_cpu_time(|| echo(echoes)));
            let (times, client) = self
                .network
                .client
                .run(move || with_cpu_time(|| ask(echoes)));
            let (echoed, server) = served.recv().expect("the server's job ends");
            echoed?;
            let measured = self.network.measure()?;
            let mut faults = self.faults(&measured);
            let mut times = times?;
            let hosts = client.zip(server).map(|(client, server)| client + server);
            faults.extend(starved(hosts, starved_limit_ms(times.iter().sum())));
            times.sort_unstable();
            if faults.is_empty() || repeated == ATTEMPTS {
                let ms = |part: f64| {
                    let at = ((times.len() - 1) as f64 * part).round() as usize; // below the length
                    times[at].as_secs_f64() * 1e3
                };
                let asked_ms = rtt.as_secs_f64() * 1e3;
                let serialised_ms = 2.0 * 64.0 * 8e3 / BPS as f64;
                return Ok(RoundTrip {
                    asked_ms,
                    echoes,
                    p50_ms: ms(0.5),
                    p95_ms: ms(0.95),
                    max_ms: ms(1.0),
                    error_ms: ms(0.5) - asked_ms - serialised_ms,
                    repeated,
                    faults,
                });
            }
            repeated += 1;
        }
    }

    /// The limits, but for what the flood does on purpose: nothing that is dropped by a device counts as a fault, for
    /// it sends more than the link carries.
    fn faults(&self, measured: &Measured) -> Vec<Fault> {
        let mut faults = self.limits.faults(measured);
        faults.retain(|fault| !matches!(fault, Fault::Devices { .. }));
        faults
    }
}

/// The fault of ends that waited for a core longer than `limit_ms`.
fn starved(ends: Option<CpuTime>, limit_ms: f64) -> Option<Fault> {
    let got_ms = ends?.waited.as_secs_f64() * 1e3;
    (got_ms > limit_ms).then_some(Fault::Starved { got_ms, limit_ms })
}

fn socket(own: std::net::Ipv4Addr, peer: std::net::Ipv4Addr) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((own, PORT))?;
    socket.connect(SocketAddr::from((peer, PORT)))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Keeps the link's queue from running empty, by half more than it carries.
fn flood(bps: u64, stop: &AtomicBool) -> io::Result<()> {
    let socket = socket(SERVER, CLIENT)?;
    let datagram = [0; FLOOD_LEN];
    let gap = Duration::from_secs_f64((FLOOD_LEN + HEADS_LEN) as f64 * 8.0 / (1.5 * bps as f64));
    let (began, mut sent) = (Instant::now(), 0u32);
    while !stop.load(Ordering::Relaxed) {
        while began + gap * sent <= Instant::now() {
            match socket.send(&datagram) {
                Ok(_) => {}
                // The receiver may not be there yet, or not any more.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error),
            }
            sent += 1;
        }
        std::thread::sleep(gap.clamp(Duration::from_micros(500), Duration::from_millis(20)));
    }
    Ok(())
}

/// Bytes of IP from the first datagram (not counted) to the last, and the seconds between them.
fn receive(time: Duration) -> io::Result<(usize, f64)> {
    let socket = socket(CLIENT, SERVER)?;
    let mut buffer = [0; 2_048];
    socket.recv(&mut buffer)?;
    let began = Instant::now();
    let mut bytes = 0;
    loop {
        bytes += socket.recv(&mut buffer)? + HEADS_LEN;
        let elapsed = began.elapsed();
        if elapsed >= time {
            return Ok((bytes, elapsed.as_secs_f64()));
        }
    }
}

fn echo(count: usize) -> io::Result<()> {
    let socket = socket(SERVER, CLIENT)?;
    let mut buffer = [0; 2_048];
    // The first only shows that both sides are there.
    for _ in 0..=count {
        let len = socket.recv(&mut buffer)?;
        socket.send(&buffer[..len])?;
    }
    Ok(())
}

fn ask(count: usize) -> io::Result<Vec<Duration>> {
    let socket = socket(CLIENT, SERVER)?;
    let mut buffer = [0; 2_048];
    let mut once = || -> io::Result<Duration> {
        let began = Instant::now();
        socket.send(&[0; ECHO_LEN])?;
        socket.recv(&mut buffer)?;
        Ok(began.elapsed())
    };
    // The server may not listen yet: then the kernel says so, and we ask again.
    let deadline = Instant::now() + PATIENCE;
    while let Err(error) = once() {
        if error.kind() != io::ErrorKind::ConnectionRefused || Instant::now() > deadline {
            return Err(error);
        }
    }
    (0..count).map(|_| once()).collect()
}
