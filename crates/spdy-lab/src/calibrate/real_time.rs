//! A cell in real time: the kernel's TCP on both sides of a link of `spdy-tun`.
//!
//! Each run has a link that is idle and counts from zero, and sockets of its own, which are reset at the end rather
//! than closed: nothing of a run is on its way when the next begins, so both meet the same chance in the same packets.

use std::future::Future;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use socket2::SockRef;
use spdy::runtime::{BoxFuture, TokioRuntime};
use spdy_net::network::{BoxIo, Network};
use spdy_netem::path::PathConfig;
use spdy_tun::host::SERVER;
use spdy_tun::limits::{Fault, Limits};
use spdy_tun::measured::Measured;
use spdy_tun::network::{NetworkConfig, RealNetwork};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::calibrate::cell::Cell;
use crate::calibrate::download;
use crate::calibrate::error::CalibrateError;
use crate::sim::seed;

/// What model and kernel have in common.
pub const CONGESTION: &str = "cubic";
/// For how long nothing must be sent before a run is over.
const SILENCE: Duration = Duration::from_millis(20);
/// Longest wait for that.
const REST_WITHIN: Duration = Duration::from_secs(30);
/// What a run may take beyond ten times what it takes in virtual time.
const PATIENCE: Duration = Duration::from_secs(30);

/// When a run counts that takes so long in virtual time: lateness is bounded by what it may change. Half a percent of the
/// time is allowed to one packet, a quarter to one in a hundred, a tenth on average; but no less than what a machine with a
/// core to spare keeps easily, and no more than what leaves TCP's timers alone.
#[must_use]
pub fn limits(expected: Duration) -> Limits {
    let expected_ms = expected.as_secs_f64() * 1e3;
    Limits {
        late_max_ms: (expected_ms * 0.005).clamp(2.0, 20.0),
        late_p99_ms: (expected_ms * 0.002_5).clamp(1.0, 10.0),
        late_mean_ms: (expected_ms * 0.001).clamp(0.25, 2.0),
        ..Limits::default()
    }
}

/// One run.
#[derive(Clone, Debug)]
pub struct Run {
    /// From the first SYN to the last byte; `None` if it was given up.
    pub took: Option<Duration>,
    /// What the link was meanwhile.
    pub measured: Measured,
    /// Why it does not count; nothing if it does.
    pub faults: Vec<Fault>,
}

/// A link that runs cells one after the other.
#[derive(Debug)]
pub struct Lane {
    network: RealNetwork,
}

impl Lane {
    /// Makes one.
    ///
    /// # Errors
    ///
    /// No namespaces, no devices, no cubic.
    pub fn start(cell: &Cell) -> Result<Self, CalibrateError> {
        let config = NetworkConfig {
            congestion: CONGESTION.to_owned(),
            ..NetworkConfig::new(cell.path())
        };
        let mut network = RealNetwork::start(&config)?;
        // Over a link that loses nothing, whatever the cell says.
        network.begin(&PathConfig::new(1 << 30, 1 << 30, Duration::ZERO), 0)?;
        check_congestion(&network)?;
        Ok(Self { network })
    }

    /// Downloads what `cell` says. `expected` is what that takes in virtual time: a run of ten times as much is
    /// given up.
    ///
    /// # Errors
    ///
    /// The link or a socket failed; not that a run does not count.
    pub fn run(
        &mut self,
        cell: &Cell,
        seed: u64,
        expected: Duration,
    ) -> Result<Run, CalibrateError> {
        self.network
            .begin(&cell.path(), seed::derive(seed, "path"))?;
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = mpsc::channel();
        let served = self
            .network
            .server
            .start_job(move || serve_until(stopped, &ready));
        let Ok(server) = listening.recv() else {
            let ended = served.recv().expect("the server's job ends");
            return Err(ended
                .err()
                .unwrap_or(io::ErrorKind::BrokenPipe.into())
                .into());
        };
        let (cell, patience) = (*cell, expected * 10 + PATIENCE);
        let fetched = self
            .network
            .client
            .run(move || fetch(&cell, server, patience));
        let measured = self.network.measure()?;
        let _ = stop.send(()); // it may have failed meanwhile, as we see next
        served.recv().expect("the server's job ends")?;
        if !self.network.wait_until_quiet(SILENCE, REST_WITHIN)? {
            let seconds = REST_WITHIN.as_secs();
            return Err(CalibrateError::Restless { seconds });
        }
        let took = fetched?;
        let faults = limits(expected).faults(&measured);
        Ok(Run {
            took,
            measured,
            faults,
        })
    }
}

fn block_on<T>(task: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(task)
}

/// On the server's thread: answers until told to stop. Its sockets end with the runtime.
fn serve_until(stopped: oneshot::Receiver<()>, ready: &mpsc::Sender<SocketAddr>) -> io::Result<()> {
    block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        let port = listener.local_addr()?.port();
        let _ = ready.send(SocketAddr::from((SERVER, port))); // whoever waits for it outlives us
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if prepare(&stream).is_ok() {
                    tokio::spawn(download::serve(Box::new(stream)));
                }
            }
        });
        let _ = stopped.await; // told to stop, or forgotten
        Ok(())
    })
}

/// On the client's thread: how long it took, if it ended in time.
fn fetch(cell: &Cell, server: SocketAddr, patience: Duration) -> io::Result<Option<Duration>> {
    block_on(async {
        let runtime = TokioRuntime::start();
        let fetched = download::fetch(&Sockets, &runtime, cell, server);
        let in_time = tokio::time::timeout(patience, fetched).await;
        in_time.ok().transpose()
    })
}

/// Asks a connection of each side which congestion control it has.
fn check_congestion(network: &RealNetwork) -> Result<(), CalibrateError> {
    let listener = network
        .server
        .run(|| std::net::TcpListener::bind((SERVER, 0)))?;
    let server = listener.local_addr()?;
    let client = network
        .client
        .run(move || std::net::TcpStream::connect(server))?;
    let accepted = network.server.run(move || listener.accept())?.0;
    for socket in [client, accepted] {
        let name = SockRef::from(&socket).tcp_congestion()?;
        let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
        if name != CONGESTION.as_bytes() {
            return Err(CalibrateError::Congestion {
                want: CONGESTION.to_owned(),
                got: String::from_utf8_lossy(&name).into_owned(),
            });
        }
    }
    Ok(())
}

/// Sends at once, and leaves without a word.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// The kernel's sockets; there are no names.
struct Sockets;

impl Network for Sockets {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let error = io::Error::new(io::ErrorKind::NotFound, format!("{host}: no names here"));
        Box::pin(std::future::ready(Err(error)))
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        Box::pin(async move {
            let stream = TcpStream::connect(to).await?;
            prepare(&stream)?;
            Ok(Box::new(stream) as BoxIo)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_grows_with_the_run_between_its_bounds() {
        let of = |seconds: f64| limits(Duration::from_secs_f64(seconds));
        assert_eq!(of(0.021).late_max_ms, 2.0);
        assert_eq!(
            (
                of(1.0).late_max_ms,
                of(1.0).late_p99_ms,
                of(1.0).late_mean_ms
            ),
            (5.0, 2.5, 1.0)
        );
        assert_eq!((of(60.0).late_max_ms, of(60.0).late_mean_ms), (20.0, 2.0));
    }
}
