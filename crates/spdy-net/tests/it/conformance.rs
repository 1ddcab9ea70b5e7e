//! Every input of the conformance vectors, over TCP: the server behind a [`Listener`] as `spdy serve` runs it, and a
//! client's [`Connection`] as `spdy fetch` opens it. Judged as the runs in virtual time are
//! (`crates/spdy/tests/it/conformance/`).
//!
//! Time is real, and nothing hangs on it: after each part the test waits until what was to come of it has come, and at
//! last for the echo of a PING of its own, behind which nothing is left unsaid.

#[path = "../../../spdy/tests/it/conformance/application.rs"]
mod application;
#[path = "../../../spdy/tests/it/conformance/judge.rs"]
mod judge;
#[path = "../../../spdy/tests/it/conformance/outcome.rs"]
mod outcome;
#[path = "../../../spdy/tests/it/conformance/run_result.rs"]
mod run_result;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use bytes::{Bytes, BytesMut};
use futures_util::{StreamExt, stream};
use http::{Request, Response};
use spdy::client::PushLimits;
use spdy::{Body, Frame, Priority, SharedRuntime, StreamId, TokioRuntime, Version};
use spdy_frame::ping::Ping;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::error::{ExchangeError, Retry};
use spdy_net::latch::Latch;
use spdy_net::listen::{ListenOptions, Listener};
use spdy_net::network::{Network, SystemNetwork};
use spdy_net::protocol::Protocol;
use spdy_net::serve::{ServerOptions, serve_connection};
use spdy_testkit::conformance::{self, Case, Receiver};
use spdy_testkit::wait::WAIT_LIMIT;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use run_result::{RequestFailure, Run, decode, version};

/// Connections open at once: each is three file descriptors in this one process.
const CONCURRENT_CASES: usize = 64;
/// Bytes that `/big` may send before we send any window update.
const FIRST_WINDOW: usize = 65_536;

#[tokio::test]
async fn every_input_has_a_permitted_outcome_over_tcp() {
    let runtime = SharedRuntime::new(TokioRuntime::start());
    let versions = [Version::V2, Version::V3, Version::V31];
    let servers = BTreeMap::from(versions.map(|version| (version, serve(version, &runtime))));
    let runs = stream::iter(conformance::all()).map(|case| async {
        let run = match case.receiver {
            Receiver::Server => {
                let server = TcpStream::connect(servers[&version(&case)]).await;
                play(&case, server.expect("it listens"), Log::default()).await
            }
            Receiver::Client => {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await;
                let listener = listener.expect("loopback has a free port");
                let address = listener.local_addr().expect("it is bound");
                let log = Log::default();
                let connection = start_client(&case, address, &runtime, &log).await;
                let (client, _) = listener.accept().await.expect("the client has connected");
                let run = play(&case, client, log).await;
                drop(connection);
                run
            }
        };
        (case, run)
    });
    let runs: Vec<_> = runs.buffered(CONCURRENT_CASES).collect().await;
    judge::judge(&runs);
}

/// Where a server of `version` listens.
fn serve(version: Version, runtime: &SharedRuntime) -> SocketAddr {
    let listener = Listener::bind((Ipv4Addr::LOCALHOST, 0).into());
    let listener = listener.expect("loopback has a free port");
    let address = listener.address();
    let options = ListenOptions::default();
    let runtime = runtime.clone();
    tokio::spawn(listener.run(options, Latch::new(), move |io, _, slot| {
        let runtime = runtime.clone();
        async move {
            let mut options = ServerOptions::default();
            options.slot = slot;
            let protocols = [Protocol::Spdy(version)];
            let handler = Arc::new(application::respond);
            let never = Latch::new();
            // How it ended is seen on the wire. That some of it is abuse must not keep out the rest.
            let _ =
                serve_connection(io, handler, &protocols, None, &options, &runtime, &never).await;
        }
    }));
    address
}

/// The state of a run.
#[derive(Clone, Default)]
struct Log(Arc<(Mutex<WireLog>, Notify)>);

#[derive(Default)]
struct WireLog {
    bytes: BytesMut,
    closed: bool,
    /// The result of a client's request.
    response: Option<Result<Bytes, RequestFailure>>,
}

impl Log {
    fn update(&self, update: impl FnOnce(&mut WireLog)) {
        let (wire, changed) = &*self.0;
        update(&mut wire.lock().expect("one thread"));
        changed.notify_one();
    }

    fn run(&self, case: &Case) -> Run {
        let wire = self.0.0.lock().expect("one thread");
        Run {
            frames: decode(version(case), &wire.bytes),
            closed: wire.closed,
            response: wire.response.clone(),
        }
    }

    /// Waits until `is_so` holds for the run, or the time limit; the caller judges the run then.
    async fn until(&self, case: &Case, is_so: impl Fn(&Run) -> bool) {
        while !is_so(&self.run(case)) {
            let changed = tokio::time::timeout(WAIT_LIMIT, self.0.1.notified());
            if changed.await.is_err() {
                return;
            }
        }
    }
}

/// Sends the three parts of `case`, each when what came before it was answered, and gives what came back.
async fn play(case: &Case, receiver: TcpStream, log: Log) -> Run {
    let (mut reader, mut writer) = receiver.into_split();
    let receiving = async {
        let mut piece = vec![0; 65_536];
        loop {
            let length = reader.read(&mut piece).await.unwrap_or(0);
            log.update(|wire| {
                wire.bytes.extend_from_slice(&piece[..length]);
                wire.closed = length == 0;
            });
            if length == 0 {
                return std::future::pending::<()>().await;
            }
        }
    };
    let sending = async {
        let mut send = async |part: &[u8]| {
            // A receiver that left may not take it all.
            let _ = tokio::time::timeout(WAIT_LIMIT, writer.write_all(part)).await;
        };
        send(&case.setup.0).await;
        log.until(case, |run| is_set_up(case, run)).await;
        send(&case.input.0).await;
        send(&case.then.0).await;
        let expected = judge::expected_outcome(case);
        log.until(case, |run| outcome::is(expected, case, run))
            .await;
        let last = last_ping(case.receiver);
        let mut ping = BytesMut::new();
        Ping { id: last }.encode(version(case), &mut ping);
        send(&ping).await;
        log.until(case, |run| run.closed || echoes(run, last)).await;
        log.run(case)
    };
    tokio::select! {
        run = sending => run,
        () = receiving => unreachable!("the exchange runs until the connection ends"),
    }
}

/// Its id: of our side, and none that an input has.
fn last_ping(receiver: Receiver) -> u32 {
    match receiver {
        Receiver::Server => 0x7fff_ffff,
        Receiver::Client => 0x7fff_fffe,
    }
}

fn echoes(run: &Run, id: u32) -> bool {
    let mut frames = run.frames.iter();
    frames.any(|observed| matches!(&observed.frame, Frame::Ping(ping) if ping.id == id))
}

/// Whether all of `setup` was answered: PINGs, and requests as far as the first window goes. A server must
/// have opened its windows, and a client must have sent a request.
fn is_set_up(case: &Case, run: &Run) -> bool {
    if case.receiver == Receiver::Client {
        let mut frames = run.frames.iter();
        return frames.any(|observed| matches!(observed.frame, Frame::SynStream(_)));
    }
    let is_answered = |stream: StreamId| {
        let data_frames = run
            .frames
            .iter()
            .filter_map(|observed| match &observed.frame {
                Frame::Data(data) if data.stream_id == stream => Some(data),
                _ => None,
            });
        let (mut bytes, mut has_ended) = (0, false);
        for data in data_frames {
            bytes += data.payload.len();
            has_ended |= data.fin;
        }
        has_ended || bytes >= FIRST_WINDOW
    };
    let setup_frames = decode(version(case), &case.setup.0);
    let has_greeted = !run.frames.is_empty();
    has_greeted
        && setup_frames.iter().all(|observed| match &observed.frame {
            Frame::Ping(ping) => echoes(run, ping.id),
            Frame::SynStream(syn) => {
                !syn.fin || outcome::holds(&observed.headers) || is_answered(syn.stream_id)
            }
            other => panic!("{}: unexpected {other:?} in a setup", case.id),
        })
}

/// A client that has requested `/`, and accepts pushes.
async fn start_client(
    case: &Case,
    server: SocketAddr,
    runtime: &SharedRuntime,
    log: &Log,
) -> Connection {
    // These cases have a body that the client does not read, and presume the window that a session starts with.
    let overflows = case.id.starts_with("c_recv_overflow");
    let mut options = ClientOptions::default();
    if overflows {
        options.stream_window_bytes = 65_536;
    }
    options.spdy.pushes = Some(PushLimits::default());
    let io = SystemNetwork.connect(server).await.expect("it listens");
    let protocol = Protocol::Spdy(version(case));
    let connection = Connection::start(io, protocol, 0, &options, runtime).await;
    let connection = connection.expect("SPDY sends without waiting");
    let request = Request::get("http://localhost/").body(Body::empty());
    let exchange = connection.send(request.expect("valid"), Priority::HIGHEST);
    let log = log.clone();
    tokio::spawn(async move {
        let response = match exchange.await {
            Ok(unread) if overflows => {
                let _unread: Response<Body> = unread;
                return std::future::pending().await;
            }
            Ok(response) => match response.into_body().collect_up_to(1 << 20).await {
                Ok(body) => Ok(body),
                Err(error) => Err(RequestFailure {
                    retry_safe: false,
                    reason: error.to_string(),
                }),
            },
            Err(ExchangeError { retry, message, .. }) => Err(RequestFailure {
                retry_safe: retry == Retry::Always,
                reason: message,
            }),
        };
        log.update(|wire| wire.response = Some(response));
    });
    connection
}
