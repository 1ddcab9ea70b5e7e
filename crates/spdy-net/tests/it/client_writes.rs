//! How a client divides its output into writes. TLS makes a record of each.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::future::join_all;
use http::Request;
use spdy::body::Body;
use spdy::forward_io;
use spdy_frame::priority::Priority;
use spdy_frame::version::Version;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;
use tokio::io::{AsyncRead, AsyncWrite};

use crate::support::{self, echo, get, post};

/// The type of DATA in HTTP/2, and here in SPDY, which has none for it.
const DATA: u8 = 0;

/// A transport that records its writes.
struct Writes(BoxIo, Arc<Mutex<Vec<Vec<u8>>>>);

impl AsyncRead for Writes {
    forward_io!(poll_read => self.0);
}

impl AsyncWrite for Writes {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.1.lock().expect("no panic").push(bytes.to_vec());
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    forward_io!(poll_flush, poll_shutdown => self.0);
}

/// The writes of a client that sends `requests` at once, as lists of the types of their frames.
async fn writes_of(
    protocol: Protocol,
    frame_per_write: bool,
    requests: impl IntoIterator<Item = Request<Body>>,
) -> Vec<Vec<u8>> {
    let (options, stop) = (ServerOptions::default(), Latch::new());
    let io = support::serve(&[protocol], echo, None, options, stop);
    let writes = Arc::new(Mutex::new(Vec::new()));
    let io = Writes(io, writes.clone());
    let mut options = ClientOptions::default();
    options.frame_per_write = frame_per_write;
    options.spdy.window_update_per_stream = false;
    let runtime = support::runtime();
    let connection = Connection::start(Box::new(io), protocol, 0, &options, &runtime);
    let connection = connection.await.expect("a connection");
    let requests = requests.into_iter();
    let sent = requests.map(|request| connection.send(request, Priority::HIGHEST));
    for response in join_all(sent).await {
        let body = support::read(response.expect("a response")).await;
        body.expect("a whole body");
    }
    let writes = writes.lock().expect("no panic");
    writes
        .iter()
        .map(|bytes| frame_types(protocol, bytes))
        .collect()
}

/// The types of the frames in `bytes`, which are whole frames.
fn frame_types(protocol: Protocol, bytes: &[u8]) -> Vec<u8> {
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let mut bytes = bytes.strip_prefix(preface).unwrap_or(bytes);
    let mut types = Vec::new();
    while !bytes.is_empty() {
        let (head_bytes, length, frame_type) = match (protocol, bytes) {
            (Protocol::Http2, [a, b, c, frame_type, ..]) => (9, [*a, *b, *c], *frame_type),
            // DATA begins with the ID of its stream.
            (_, [0, _, _, _, _, a, b, c, ..]) => (8, [*a, *b, *c], DATA),
            (_, [_, _, _, frame_type, _, a, b, c, ..]) => (8, [*a, *b, *c], *frame_type),
            _ => panic!("the write ends within a head: {bytes:?}"),
        };
        let length = u32::from_be_bytes([0, length[0], length[1], length[2]]) as usize;
        types.push(frame_type);
        bytes = &bytes[head_bytes + length..];
    }
    types
}

/// Three requests without a body.
fn three() -> [Request<Body>; 3] {
    [(); 3].map(|()| get("/1000"))
}

#[tokio::test]
async fn frames_that_are_ready_leave_in_one_write() {
    // The preface, SETTINGS, WINDOW_UPDATE, and HEADERS of each request.
    let writes = writes_of(Protocol::Http2, false, three()).await;
    assert_eq!(writes[0], [4, 8, 1, 1, 1]);
    // SETTINGS, WINDOW_UPDATE, and SYN_STREAM of each request.
    let writes = writes_of(Protocol::Spdy(Version::V31), false, three()).await;
    assert_eq!(writes[0], [4, 9, 1, 1, 1]);
}

#[tokio::test]
async fn a_client_like_chromium_writes_each_frame_alone() {
    // Only the frames before the first request of HTTP/2 are written together.
    let writes = writes_of(Protocol::Http2, true, three()).await;
    assert_eq!(writes[..4], [vec![4, 8], vec![1], vec![1], vec![1]]);
    assert!(
        writes[1..].iter().all(|frames| frames.len() == 1),
        "{writes:?}"
    );
    let writes = writes_of(Protocol::Spdy(Version::V31), true, three()).await;
    assert_eq!(writes[..5], [vec![4], vec![9], vec![1], vec![1], vec![1]]);
    assert!(writes.iter().all(|frames| frames.len() == 1), "{writes:?}");
}

#[tokio::test]
async fn a_client_like_chromium_writes_each_frame_of_an_upload_alone() {
    for protocol in [Protocol::Http2, Protocol::Spdy(Version::V31)] {
        let upload = post("/", vec![b'x'; 50_000]);
        let writes = writes_of(protocol, true, [upload]).await;
        let alone = writes[1..].iter().filter(|frames| frames.len() == 1);
        assert_eq!(alone.count(), writes.len() - 1, "{protocol}: {writes:?}");
        let parts = writes.iter().filter(|frames| frames[..] == [DATA]);
        assert!(parts.count() >= 3, "{protocol}: {writes:?}");
    }
}
