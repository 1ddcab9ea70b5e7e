//! A gigabyte over one stream: our SPDY/3.1 against HTTP/2 by the crate h2, in one run.
//!
//! ```text
//!  sender --64 KiB pieces--> server | loopback TCP or a pipe in memory | client --> counts, returns credit
//! ```
//!
//! Both ends are in this process, so CPU seconds are the sum of both. Rounds are interleaved. The output has medians, and the range
//! of the rounds' ratios. `cargo bench -p spdy-load --bench bulk -- [ROUNDS [MEGABYTES]]`

use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as _, Frame};
use spdy::{Body, Priority, SharedRuntime, TokioRuntime, Version};
use spdy_load::process::own_cpu;
use spdy_net::network::BoxIo;
use tokio::net::{TcpListener, TcpStream};

/// Bytes of one write of the sender.
const PIECE: usize = 64 * 1024;
/// Capacity of a pipe in memory, similar to a socket's.
const PIPE: usize = 256 * 1024;

/// The transport between both ends.
#[derive(Clone, Copy)]
enum Transport {
    Tcp,
    Pipe,
}

/// Size of the windows.
#[derive(Clone, Copy)]
enum Windows {
    /// The same for both: stream and session, and frames of 16 KiB.
    Of(u32),
    /// The defaults of each.
    Default,
}

#[derive(Clone, Copy)]
enum Side {
    Spdy,
    H2,
}

/// One comparison.
#[derive(Clone, Copy)]
struct Setting {
    transport: Transport,
    windows: Windows,
    threads: usize,
}

const SETTINGS: [(&str, Setting); 6] = [
    (
        "tcp, 1 MiB windows, 1 thread",
        setting(Transport::Tcp, Windows::Of(1 << 20), 1),
    ),
    (
        "tcp, 16 MiB windows, 1 thread",
        setting(Transport::Tcp, Windows::Of(16 << 20), 1),
    ),
    (
        "tcp, own defaults, 1 thread",
        setting(Transport::Tcp, Windows::Default, 1),
    ),
    (
        "tcp, 1 MiB windows, 2 threads",
        setting(Transport::Tcp, Windows::Of(1 << 20), 2),
    ),
    (
        "pipe, 1 MiB windows, 1 thread",
        setting(Transport::Pipe, Windows::Of(1 << 20), 1),
    ),
    (
        "pipe, own defaults, 1 thread",
        setting(Transport::Pipe, Windows::Default, 1),
    ),
];

const fn setting(transport: Transport, windows: Windows, threads: usize) -> Setting {
    Setting {
        transport,
        windows,
        threads,
    }
}

/// Times of one transfer.
#[derive(Clone, Copy)]
struct TransferTime {
    wall: Duration,
    cpu: Duration,
}

fn main() {
    let numbers: Vec<u64> = std::env::args()
        .filter_map(|text| text.parse().ok())
        .collect();
    let rounds = numbers.first().copied().unwrap_or(5).max(1);
    let bytes = numbers.get(1).copied().unwrap_or(1000) * 1_000_000;
    let mut out = io::stdout().lock();
    let mut print = |text: String| writeln!(out, "{text}").expect("stdout can be written");
    print(format!(
        "{bytes} bytes over one stream, {rounds} rounds: medians; MB/s, CPU s/GB of both ends"
    ));
    print(format!(
        "{:<32} {:>16} {:>16} {:>22} {:>10}",
        "", "spdy/3.1", "h2", "speed (min-max)", "CPU"
    ));
    for (name, setting) in SETTINGS {
        let mut spdy = Vec::new();
        let mut h2 = Vec::new();
        for _ in 0..rounds {
            spdy.push(transfer(Side::Spdy, setting, bytes));
            h2.push(transfer(Side::H2, setting, bytes));
        }
        let rate = |time: &TransferTime| bytes as f64 / 1e6 / time.wall.as_secs_f64();
        let cpu = |time: &TransferTime| time.cpu.as_secs_f64() * 1e9 / bytes as f64;
        let shown = |all: &[TransferTime]| {
            format!(
                "{:.0}, {:.3}",
                median(all.iter().map(rate)),
                median(all.iter().map(cpu))
            )
        };
        let ratios = |of: &dyn Fn(&TransferTime) -> f64| -> Vec<f64> {
            spdy.iter()
                .zip(&h2)
                .map(|(spdy, h2)| of(spdy) / of(h2))
                .collect()
        };
        let (speed, cost) = (ratios(&rate), ratios(&cpu));
        let min = speed.iter().copied().fold(f64::INFINITY, f64::min);
        let max = speed.iter().copied().fold(0.0, f64::max);
        print(format!(
            "{name:<32} {:>16} {:>16} {:>22} {:>10.2}",
            shown(&spdy),
            shown(&h2),
            format!("{:.2} ({min:.2}-{max:.2})", median(speed.iter().copied())),
            median(cost.iter().copied()),
        ));
    }
}

fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = numbers.collect();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() % 2 {
        1 => sorted[middle],
        _ => (sorted[middle - 1] + sorted[middle]) / 2.0,
    }
}

/// Moves `bytes` from server to client.
fn transfer(side: Side, setting: Setting, bytes: u64) -> TransferTime {
    let runtime = match setting.threads {
        1 => tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build(),
        threads => tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_all()
            .build(),
    };
    let runtime = runtime.expect("the runtime can be created");
    // A task: on the blocking thread the two ends would be slower.
    let task = runtime.spawn(async move {
        let (near, far) = connect(setting.transport).await;
        let cpu = own_cpu().expect("/proc is mounted");
        let begun = Instant::now();
        let received = match side {
            Side::Spdy => over_spdy(near, far, setting.windows, bytes).await,
            Side::H2 => over_h2(near, far, setting.windows, bytes).await,
        };
        let wall = begun.elapsed();
        assert_eq!(received, bytes, "bytes of the body");
        let cpu = own_cpu().expect("/proc is mounted") - cpu;
        TransferTime { wall, cpu }
    });
    runtime.block_on(task).expect("neither side panicked")
}

async fn connect(transport: Transport) -> (BoxIo, BoxIo) {
    match transport {
        Transport::Pipe => {
            let (near, far) = tokio::io::duplex(PIPE);
            (Box::new(near), Box::new(far))
        }
        Transport::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0")
                .await
                .expect("loopback has a free port");
            let address = listener.local_addr().expect("the listener is bound");
            let near = TcpStream::connect(address)
                .await
                .expect("the server listens");
            let (far, _) = listener.accept().await.expect("the client has connected");
            near.set_nodelay(true).expect("the socket is a TCP socket");
            far.set_nodelay(true).expect("the socket is a TCP socket");
            (Box::new(near), Box::new(far))
        }
    }
}

/// This many bytes, in pieces that share memory.
struct Pieces {
    remaining: u64,
    piece: Bytes,
}

impl Pieces {
    fn new(bytes: u64) -> Self {
        Self {
            remaining: bytes,
            piece: Bytes::from(vec![b'x'; PIECE]),
        }
    }

    fn take(&mut self) -> Option<Bytes> {
        let len = usize::try_from(self.remaining)
            .unwrap_or(usize::MAX)
            .min(PIECE);
        self.remaining -= len as u64;
        (len > 0).then(|| self.piece.slice(..len))
    }
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.take().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.remaining == 0
    }
}

async fn over_spdy(near: BoxIo, far: BoxIo, windows: Windows, bytes: u64) -> u64 {
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let mut client = spdy::client::Builder::new(Version::V31);
    if let Windows::Of(window) = windows {
        client = client
            .initial_window_bytes(window)
            .session_window_bytes(window);
    }
    let server = spdy::server::Builder::new(Version::V31);
    let answer =
        move |_: Request<Body>| async move { Response::new(Body::wrap(Pieces::new(bytes))) };
    let serving = tokio::spawn(server.serve(far, runtime.clone(), answer));
    let (session, connection) = client.handshake(near, runtime);
    connection.spawn();
    let request = Request::get("http://localhost/")
        .body(Body::empty())
        .expect("the request is valid");
    let response = session
        .request(request, Priority::HIGHEST)
        .await
        .expect("the server responds");
    let mut body = response.into_body();
    let mut received = 0;
    while let Some(frame) = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let data = frame.expect("the body is complete").into_data();
        received += data.map_or(0, |data| data.len() as u64);
    }
    session.shutdown();
    drop(session);
    serving
        .await
        .expect("the server did not panic")
        .expect("the session ended in order");
    received
}

async fn over_h2(near: BoxIo, far: BoxIo, windows: Windows, bytes: u64) -> u64 {
    let serving = tokio::spawn(async move {
        let mut connection = h2::server::handshake(far)
            .await
            .expect("the handshake succeeds");
        while let Some(request) = connection.accept().await {
            let (_, mut respond) = request.expect("the server gets a request");
            tokio::spawn(async move {
                let mut stream = respond
                    .send_response(Response::new(()), false)
                    .expect("the connection is open");
                let mut pieces = Pieces::new(bytes);
                while let Some(mut piece) = pieces.take() {
                    while !piece.is_empty() {
                        stream.reserve_capacity(piece.len());
                        let capacity = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
                        let capacity = capacity
                            .expect("the connection is open")
                            .expect("the connection is open");
                        let part = piece.split_to(capacity.min(piece.len()));
                        stream
                            .send_data(part, false)
                            .expect("the connection is open");
                    }
                }
                stream
                    .send_data(Bytes::new(), true)
                    .expect("the connection is open");
            });
        }
    });
    let mut client = h2::client::Builder::new();
    if let Windows::Of(window) = windows {
        client
            .initial_window_size(window)
            .initial_connection_window_size(window);
    }
    let (mut sender, connection) = client
        .handshake::<_, Bytes>(near)
        .await
        .expect("the handshake succeeds");
    let connection = tokio::spawn(connection);
    let request = Request::get("http://localhost/")
        .body(())
        .expect("the request is valid");
    let (response, _) = sender
        .send_request(request, true)
        .expect("the connection is open");
    let mut body = response.await.expect("the server responds").into_body();
    let mut received = 0;
    while let Some(data) = body.data().await {
        let data = data.expect("the body is complete");
        received += data.len() as u64;
        body.flow_control()
            .release_capacity(data.len())
            .expect("released bytes were received before");
    }
    drop((sender, body));
    connection
        .await
        .expect("the client did not panic")
        .expect("the connection ended in order");
    serving.await.expect("the server did not panic");
    received
}
