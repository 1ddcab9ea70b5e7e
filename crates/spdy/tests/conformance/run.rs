//! Runs one input: sends its three parts with time to answer in between, and notes what came back.

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream;
use http::{Request, Response};
use spdy::{Body, Frame, HeaderBlock, Priority, SharedRuntime, Version, client, server};
use spdy_frame::decoder::{Decoder, Limits};
use spdy_frame::header_block::BlockLimits;
use spdy_frame::inflate::Inflater;
use spdy_testkit::conformance::{Case, Receiver};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::virtual_world::{End, VirtualTime, World, wire};

/// Time to answer `setup`, and then `input` and `then`.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_millis(900),
    Duration::from_millis(900),
];

/// A frame, and the headers of its block.
pub(crate) struct Seen {
    pub(crate) frame: Frame,
    pub(crate) headers: HeaderBlock,
}

/// In one line, for a list of what went wrong.
impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.frame {
            Frame::SynStream(syn) => write!(f, "SYN_STREAM({}, {:?})", syn.stream_id, self.headers),
            Frame::SynReply(reply) => {
                write!(f, "SYN_REPLY({}, {:?})", reply.stream_id, self.headers)
            }
            Frame::Data(data) => write!(
                f,
                "DATA({}, {} bytes{})",
                data.stream_id,
                data.payload.len(),
                if data.fin { ", FIN" } else { "" }
            ),
            other => write!(f, "{other:?}"),
        }
    }
}

/// What the receiver did.
#[derive(Debug)]
pub(crate) struct Run {
    /// What it sent.
    pub(crate) frames: Vec<Seen>,
    /// It closed the connection.
    pub(crate) closed: bool,
    /// A client's answer to its request, if there was one by the end.
    pub(crate) response: Option<Result<Bytes, spdy::Error>>,
}

/// What the wire brought.
#[derive(Default)]
struct Log {
    bytes: BytesMut,
    closed: bool,
    response: Option<Result<Bytes, spdy::Error>>,
    /// What the client's application holds on to: its session, and a body that it does not read.
    held: Vec<Box<dyn Any + Send>>,
}

/// The version of a case.
pub(crate) fn version(case: &Case) -> Version {
    match case.version.as_str() {
        "2" => Version::V2,
        "3" => Version::V3,
        "3.1" => Version::V31,
        other => panic!("{}: no version {other}", case.id),
    }
}

/// The frames in `bytes`, up to the first that is none.
pub(crate) fn decode(version: Version, bytes: &[u8]) -> Vec<Seen> {
    let mut decoder = Decoder::new(version, Limits::default());
    let mut inflater = Inflater::new(version, BlockLimits::default());
    let mut input = BytesMut::from(bytes);
    let mut frames = Vec::new();
    while let Ok(Some(frame)) = decoder.decode(&mut input) {
        let headers = match &frame {
            Frame::SynStream(syn) => inflater.inflate(&syn.block),
            Frame::SynReply(reply) => inflater.inflate(&reply.block),
            Frame::Headers(headers) => inflater.inflate(&headers.block),
            _ => inflater.inflate(&Bytes::new()),
        };
        let Ok(inflated) = headers else { break };
        let headers = inflated.headers.unwrap_or_default();
        frames.push(Seen { frame, headers });
    }
    frames
}

/// Runs `case` from its first byte until the last answer had its time.
pub(crate) fn run(case: &Case) -> Run {
    let world = Arc::<World>::default();
    let runtime = SharedRuntime::new(VirtualTime(world.clone()));
    let (ours, theirs) = wire(&world, Duration::ZERO);
    let log = Arc::<Mutex<Log>>::default();
    match case.receiver {
        Receiver::Server => serve(theirs, version(case), &runtime),
        Receiver::Client => ask(theirs, case, &runtime, &log),
    }
    let (mut reader, mut writer) = tokio::io::split(ours);
    let heard = log.clone();
    runtime.spawn(Box::pin(async move {
        let mut piece = vec![0; 65_536];
        loop {
            let length = reader.read(&mut piece).await.expect("a wire does not fail");
            let mut log = heard.lock().expect("one thread");
            if length == 0 {
                log.closed = true;
                return;
            }
            log.bytes.extend_from_slice(&piece[..length]);
        }
    }));
    let result = Arc::<Mutex<Option<Run>>>::default();
    let (noted, clock, case_version) = (result.clone(), runtime.clone(), version(case));
    let parts = [&case.setup, &case.input, &case.then].map(|part| part.0.clone());
    runtime.spawn(Box::pin(async move {
        for (part, pause) in parts.iter().zip(PAUSES) {
            // A receiver that left may not take the rest.
            let _ = writer.write_all(part).await;
            clock.sleep_until(clock.now() + pause).await;
        }
        let mut log = log.lock().expect("one thread");
        *noted.lock().expect("one thread") = Some(Run {
            frames: decode(case_version, &log.bytes),
            closed: log.closed,
            response: log.response.take(),
        });
    }));
    world.run();
    let run = result.lock().expect("one thread").take();
    run.unwrap_or_else(|| panic!("{} did not come to its end", case.id))
}

/// A server with the paths that the inputs ask for.
fn serve(io: End, version: Version, runtime: &SharedRuntime) {
    let serving = server::Builder::new(version).serve(
        io,
        runtime.clone(),
        |request: Request<Body>| async move {
            match request.uri().path() {
                "/hold" => {
                    let _unread = request;
                    std::future::pending().await
                }
                "/big" => Response::new(Body::full(vec![b'b'; 200_000])),
                "/sink" => Response::new(sink(request.into_body())),
                _ => match request.into_body().collect_up_to(1 << 20).await {
                    Ok(_) => Response::new(Body::from("ok\r\n")),
                    // The request was given up, or is not as long as it said: whatever is said now.
                    Err(_) => Response::new(Body::empty()),
                },
            }
        },
    );
    runtime.spawn(Box::pin(async move {
        let _ = serving.await; // how it ended is seen on the wire
    }));
}

/// `go` at once, and when all was read its length.
fn sink(body: Body) -> Body {
    let go = stream::iter([Ok::<_, spdy::BoxError>(Bytes::from_static(b"go"))]);
    let length = stream::once(async move {
        let bytes = body.collect_up_to(1 << 20).await?;
        Ok(Bytes::from(bytes.len().to_string()))
    });
    Body::from_stream(futures_util::StreamExt::chain(go, length))
}

/// A client that has asked for `/`, and takes pushes.
fn ask(io: End, case: &Case, runtime: &SharedRuntime, log: &Arc<Mutex<Log>>) {
    // These are about a body that nobody reads, and presume the window that a session starts with.
    let overflows = case.id.starts_with("c_recv_overflow");
    let mut builder = client::Builder::new(version(case));
    if overflows {
        builder = builder.initial_window_bytes(65_536);
    }
    let (session, mut pushes, connection) = builder.handshake_with_pushes(io, runtime.clone());
    connection.spawn();
    runtime.spawn(Box::pin(async move {
        while let Some(push) = pushes.next().await {
            if let Ok(response) = push.response().await {
                let _ = response.into_body().collect_up_to(1 << 20).await;
            }
        }
    }));
    let request = Request::get("http://localhost/").body(Body::empty());
    let log = log.clone();
    let asked = session.request(request.expect("valid"), Priority::HIGHEST);
    log.lock().expect("one thread").held.push(Box::new(session));
    runtime.spawn(Box::pin(async move {
        let response = match asked.await {
            Ok(unread) if overflows => {
                log.lock().expect("one thread").held.push(Box::new(unread));
                return;
            }
            Ok(response) => response
                .into_body()
                .collect_up_to(1 << 20)
                .await
                .map_err(|error| match error.downcast::<spdy::Error>() {
                    Ok(error) => *error,
                    Err(error) => panic!("{error}"),
                }),
            Err(error) => Err(error),
        };
        log.lock().expect("one thread").response = Some(response);
    }));
}
