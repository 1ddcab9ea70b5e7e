//! A hundred requests on one connection, over a pipe in memory.
//!
//! To count one end alone, the bytes of both ends are recorded first. Then the other end is replaced by its bytes.

use std::sync::Arc;

use futures_util::future::{join, join_all};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_testkit::clock::Clock;
use spdy_testkit::echo::read;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;

use crate::{HotPath, SPDY};

/// Requests on one connection: all at once, one by one over HTTP/1.1.
pub(crate) const REQUESTS: usize = 100;
/// A pipe holds all bytes of a connection.
const PIPE_BYTES: usize = 1 << 20;
/// A GOAWAY frame of SPDY/3.1.
const GOAWAY_BYTES: usize = 16;
const BODY: &[u8] = &[b'x'; 128];

/// Tokio's tasks on this thread, and a clock that stands still.
pub(crate) struct Bench {
    tokio: tokio::runtime::Runtime,
    pub(crate) runtime: SharedRuntime,
}

impl Bench {
    pub(crate) fn new() -> Self {
        let tokio = tokio::runtime::Builder::new_current_thread().build();
        Self {
            tokio: tokio.expect("a runtime without I/O can be created"),
            runtime: SharedRuntime::new(Clock::default()),
        }
    }

    pub(crate) fn run<T>(&self, work: impl Future<Output = T>) -> T {
        self.tokio.block_on(work)
    }
}

/// Serves connections of clients.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) protocol: Protocol,
    pub(crate) runtime: SharedRuntime,
}

impl Server {
    pub(crate) fn serve(&self, io: DuplexStream) -> JoinHandle<()> {
        let (server, io) = (self.clone(), Box::new(io) as BoxIo);
        tokio::spawn(async move {
            let (options, stop) = (ServerOptions::default(), Latch::new());
            let protocols = [server.protocol];
            let runtime = &server.runtime;
            let handler = server.handler.clone();
            let served = serve_connection(io, handler, &protocols, None, &options, runtime, &stop);
            let _ = served.await; // an end without a GOAWAY is an error for some protocols
        })
    }
}

/// A request as a browser sends it.
fn request(host: &str) -> http::Request<Body> {
    let fields = [
        ("accept", "image/avif,image/webp,*/*;q=0.8"),
        ("accept-encoding", "gzip, deflate, br, zstd"),
        ("accept-language", "en-GB,en;q=0.9,de;q=0.8"),
        (
            "user-agent",
            "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko)",
        ),
        ("referer", "https://www.site.test/"),
    ];
    let request = http::Request::get(format!("http://{host}/image.png"));
    let request = fields.into_iter().fold(request, |request, (name, value)| {
        request.header(name, value)
    });
    request.body(Body::empty()).expect("the request is valid")
}

pub(crate) const HOST: &str = "www.site.test";

/// Sends all requests over `io`, and reads all responses.
pub(crate) async fn send_requests(io: DuplexStream, protocol: Protocol, runtime: &SharedRuntime) {
    let options = ClientOptions::default();
    let connection = Connection::start(Box::new(io), protocol, 0, &options, runtime).await;
    let connection = connection.expect("the pipe is open");
    let send = || {
        let sending = connection.send(request(HOST), Priority::HIGHEST);
        async {
            let response = sending.await.expect("the server responds");
            assert_eq!(response.status(), 200);
            read(response).await.expect("the body is complete")
        }
    };
    if protocol == Protocol::Http1 {
        for _ in 0..REQUESTS {
            assert!(connection.ready().await);
            assert_eq!(send().await, BODY);
        }
    } else {
        let bodies = join_all((0..REQUESTS).map(|_| send())).await;
        assert!(bodies.iter().all(|body| body == BODY));
    }
}

/// The response to every request.
pub(crate) async fn respond(_: http::Request<Body>) -> http::Response<Body> {
    let response = http::Response::builder()
        .header("content-type", "image/png")
        .header("last-modified", "Wed, 01 Jan 2020 00:00:00 GMT")
        .header("etag", "\"5e0be100-400\"")
        .header("cache-control", "public, max-age=31536000")
        .header("content-length", BODY.len());
    response
        .body(Body::full(BODY))
        .expect("the response is valid")
}

/// The bytes of a connection.
pub(crate) struct Recording {
    from_client: Vec<u8>,
    from_server: Vec<u8>,
}

/// Copies bytes, and records them.
async fn copy(mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>) -> Vec<u8> {
    let (mut bytes, mut part) = (Vec::new(), vec![0; PIPE_BYTES]);
    while let Ok(len @ 1..) = from.read(&mut part).await {
        bytes.extend(&part[..len]);
        if to.write_all(&part[..len]).await.is_err() {
            break;
        }
    }
    let _ = to.shutdown().await;
    bytes
}

/// Records a connection to `server`.
pub(crate) async fn record(server: &Server) -> Recording {
    let (client_io, near) = duplex(PIPE_BYTES);
    let (far, server_io) = duplex(PIPE_BYTES);
    let (from_near, to_near) = split(near);
    let (from_far, to_far) = split(far);
    let from_client = tokio::spawn(copy(from_near, to_far));
    let from_server = tokio::spawn(copy(from_far, to_near));
    let serving = server.serve(server_io);
    send_requests(client_io, server.protocol, &server.runtime).await;
    let (from_client, from_server) = join(from_client, from_server).await;
    serving.await.expect("the server does not panic");
    Recording {
        from_client: from_client.expect("the copy does not panic"),
        from_server: from_server.expect("the copy does not panic"),
    }
}

/// Sends the recorded bytes of a client to `server`, until it has written as many bytes as were recorded.
pub(crate) async fn replay_client(recording: &Recording, server: &Server, received: &mut [u8]) {
    let (mut near, far) = duplex(PIPE_BYTES);
    let serving = server.serve(far);
    let sent = near.write_all(&recording.from_client).await;
    sent.expect("the pipe has room");
    let received = near.read_exact(received).await;
    received.expect("the server responds as it was recorded");
    drop(near);
    serving.await.expect("the server does not panic");
}

/// The server's end of a connection, without its client.
pub(crate) fn server_path(bench: Bench, server: Server) -> HotPath {
    let recording = bench.run(record(&server));
    let mut received = vec![0; recording.from_server.len()];
    HotPath::new(REQUESTS, "request", move || {
        bench.run(replay_client(&recording, &server, &mut received));
    })
}

fn responding(protocol: Protocol) -> (Bench, Server) {
    let bench = Bench::new();
    let runtime = bench.runtime.clone();
    let handler: Arc<dyn Handler> = Arc::new(respond);
    let server = Server {
        handler,
        protocol,
        runtime,
    };
    (bench, server)
}

pub(crate) fn server(protocol: Protocol) -> HotPath {
    let (bench, server) = responding(protocol);
    server_path(bench, server)
}

/// The client's end of a SPDY session, without its server.
pub(crate) fn spdy_client() -> HotPath {
    let protocol = SPDY;
    let (bench, server) = responding(protocol);
    let recording = bench.run(record(&server));
    // The client sends a GOAWAY after the last response.
    let mut requests = vec![0; recording.from_client.len() - GOAWAY_BYTES];
    HotPath::new(REQUESTS, "request", move || {
        bench.run(async {
            let (near, mut far) = duplex(PIPE_BYTES);
            // The responses wait until the requests have been sent.
            let replay = async {
                let sent = far.read_exact(&mut requests).await;
                sent.expect("the client sends what was recorded");
                let replayed = far.write_all(&recording.from_server).await;
                replayed.expect("the pipe has room");
            };
            join(send_requests(near, protocol, &bench.runtime), replay).await;
        });
    })
}

/// Both ends.
pub(crate) fn exchange(protocol: Protocol) -> HotPath {
    let (bench, server) = responding(protocol);
    HotPath::new(REQUESTS, "request", move || {
        bench.run(async {
            let (near, far) = duplex(PIPE_BYTES);
            let serving = server.serve(far);
            send_requests(near, protocol, &server.runtime).await;
            serving.await.expect("the server does not panic");
        });
    })
}
