//! When a listener over QUIC requires a proof of a client's address (Retry, RFC 9000 §8.1.2).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use spdy::runtime::{BoxFuture, SharedRuntime};
use spdy_frame::priority::Priority;
use spdy_net::admission::{Admission, AdmissionLimits};
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::limit::LimitHits;
use spdy_net::listen::ListenOptions;
use spdy_net::network::{
    AsyncUdpSocket, BoxIo, DatagramSocket, Network, RecvMeta, SystemNetwork, Transmit, UdpPoller,
};
use spdy_testkit::clock::Clock;

use crate::support::http3::TestServer;
use crate::support::{echo, get, read};

/// The system's network, which counts the Retry packets that its sockets receive.
#[derive(Default)]
struct RetryCounter(Arc<AtomicUsize>);

impl Network for RetryCounter {
    fn resolve(&self, host: &str) -> BoxFuture<io::Result<Vec<IpAddr>>> {
        SystemNetwork.resolve(host)
    }

    fn connect(&self, to: SocketAddr) -> BoxFuture<io::Result<BoxIo>> {
        SystemNetwork.connect(to)
    }

    fn datagrams(&self, local: SocketAddr) -> io::Result<DatagramSocket> {
        Ok(Arc::new(RetryCountingSocket {
            socket: SystemNetwork.datagrams(local)?,
            retries: self.0.clone(),
        }))
    }
}

#[derive(Debug)]
struct RetryCountingSocket {
    socket: DatagramSocket,
    retries: Arc<AtomicUsize>,
}

impl AsyncUdpSocket for RetryCountingSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.socket.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.socket.try_send(transmit)
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.socket.poll_recv(cx, bufs, meta);
        if let Poll::Ready(Ok(filled)) = received {
            for (buf, meta) in bufs.iter().zip(meta).take(filled) {
                // A long header of type 3 (RFC 9000 §17.2.5). No other packet is in the datagram of a Retry.
                let datagrams = buf[..meta.len].chunks(meta.stride.max(1));
                let retries = datagrams.filter(|it| it[0] & 0xf0 == 0xf0).count();
                self.retries.fetch_add(retries, Ordering::Relaxed);
            }
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.socket.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.socket.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.socket.may_fragment()
    }
}

/// A connection on which one request was answered, and whether a Retry came before.
async fn connect(server: &TestServer) -> (Connection, bool) {
    let network = RetryCounter::default();
    let connection = server
        .connect_over(&network, ClientOptions::default())
        .await;
    let response = connection.send(get("/1"), Priority::HIGHEST).await.unwrap();
    assert_eq!(read(response).await.unwrap().len(), 1);
    (connection, network.0.load(Ordering::Relaxed) > 0)
}

#[tokio::test]
async fn with_many_connections_the_next_gets_a_retry() {
    let server = TestServer::serve(echo);
    let mut open = Vec::new();
    for nth in 0..=128 {
        let (connection, had_retry) = connect(&server).await;
        assert_eq!(had_retry, nth == 128, "connection {nth}");
        open.push(connection);
    }
}

#[tokio::test]
async fn retry_is_sent_at_half_the_address_limit_or_when_full() {
    let mut of_own = AdmissionLimits::default();
    of_own.per_address = 10;
    let mut of_room = AdmissionLimits::default();
    of_room.connections = 5;
    for limits in [of_own, of_room] {
        let mut listen = ListenOptions::default();
        listen.admission = Admission::new(limits, LimitHits::default());
        let server = TestServer::listen(SharedRuntime::new(Clock::default()), echo, listen);
        let mut open = Vec::new();
        for nth in 0..6 {
            let (connection, had_retry) = connect(&server).await;
            assert_eq!(had_retry, nth == 5, "{limits:?}: connection {nth}");
            open.push(connection);
        }
    }
}
