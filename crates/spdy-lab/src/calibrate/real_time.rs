//! A download in real time: the kernel's TCP on both sides of the link.
//!
//! Each run has its own sockets, which are reset at the end rather than closed.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::mpsc;
use std::time::Duration;

use socket2::SockRef;
use spdy::runtime::{BoxFuture, TokioRuntime};
use spdy_net::network::{BoxIo, Network};
use spdy_netem::path::PathConfig;
use spdy_tun::cpu::CpuTime;
use spdy_tun::host::SERVER;
use spdy_tun::network::RealNetwork;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

use crate::calibrate::download_cell::DownloadCell;
use crate::calibrate::error::CalibrateError;
use crate::calibrate::workload::{Attempt, Workload};
use crate::calibrate::{download, virtual_time};
use crate::live::clock::block_on;

impl Workload for DownloadCell {
    fn path(&self) -> PathConfig {
        Self::path(self)
    }

    fn run_virtual(&self, seed: u64) -> io::Result<Duration> {
        virtual_time::run(self, seed)
    }

    fn run_real(
        &self,
        network: &mut RealNetwork,
        _: u64,
        patience: Duration,
    ) -> Result<Attempt, CalibrateError> {
        let (stop, stopped) = oneshot::channel();
        let (ready, listening) = mpsc::channel();
        let serve = move || with_cpu_time(|| serve_until(stopped, &ready));
        let served = network.server.start_job(serve);
        let Ok(server) = listening.recv() else {
            let (ended, _) = served.recv().expect("the server's job ends");
            return Err(ended
                .err()
                .unwrap_or(io::ErrorKind::BrokenPipe.into())
                .into());
        };
        let cell = *self;
        let fetch = move || with_cpu_time(|| fetch(&cell, server, patience));
        let (fetched, client) = network.client.run(fetch);
        let measured = network.measure()?;
        let _ = stop.send(()); // the server may have failed, which the next line detects
        let (served, server) = served.recv().expect("the server's job ends");
        served?;
        Ok(Attempt {
            took: fetched?,
            measured,
            hosts: client.zip(server).map(|(client, server)| client + server),
        })
    }
}

/// Calls `work`, and measures the CPU time of this thread meanwhile.
pub(super) fn with_cpu_time<T>(work: impl FnOnce() -> T) -> (T, Option<CpuTime>) {
    let before = CpuTime::of_this_thread();
    let done = work();
    let after = CpuTime::of_this_thread();
    (
        done,
        after.zip(before).map(|(after, before)| after - before),
    )
}

/// Runs on the server's thread until stopped. Its sockets end with the runtime.
fn serve_until(stopped: oneshot::Receiver<()>, ready: &mpsc::Sender<SocketAddr>) -> io::Result<()> {
    block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await?;
        let port = listener.local_addr()?.port();
        let _ = ready.send(SocketAddr::from((SERVER, port))); // the receiver outlives this task
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if prepare(&stream).is_ok() {
                    tokio::spawn(download::serve(Box::new(stream)));
                }
            }
        });
        let _ = stopped.await; // stopped, or the sender was dropped
        Ok(())
    })
}

/// Runs on the client's thread. Returns the duration, or the reason why it did not end.
fn fetch(
    cell: &DownloadCell,
    server: SocketAddr,
    patience: Duration,
) -> io::Result<Result<Duration, String>> {
    block_on(async {
        let runtime = TokioRuntime::start();
        let fetched = download::fetch(&KernelNetwork, &runtime, cell, server);
        Ok(match tokio::time::timeout(patience, fetched).await {
            Ok(Ok(took)) => Ok(took),
            Ok(Err(fault)) => Err(format!("it failed: {fault}")),
            Err(_) => Err("it did not end".to_owned()),
        })
    })
}

/// Disables Nagle's algorithm, and makes the socket reset its connection when dropped.
fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_linger(Some(Duration::ZERO))
}

/// The kernel's sockets, without names.
struct KernelNetwork;

impl Network for KernelNetwork {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        let error = io::Error::new(
            io::ErrorKind::NotFound,
            format!("{host}: calibration resolves no names"),
        );
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
