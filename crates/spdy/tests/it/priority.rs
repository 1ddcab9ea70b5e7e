//! The order of responses, with and without priorities of the client.

use std::sync::{Arc, Mutex};

use http::{Method, Request, Response};
use spdy::{Body, Direction, Frame, Observe, ObservedFrame, Priority, Version, client, server};
use spdy_testkit::wait::WAIT_LIMIT;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::support::{bytes_of, get, pattern, pipe, runtime};

/// The streams of a server's DATA frames, in the order of the wire.
#[derive(Default)]
struct Turns {
    streams: Mutex<Vec<u32>>,
    data_sent: Notify,
}

impl Turns {
    fn so_far(&self) -> Vec<u32> {
        self.streams.lock().expect("no panic").clone()
    }
}

impl Observe for Turns {
    fn seen(&self, observed: &ObservedFrame<'_>) {
        if let (Direction::Sent, Frame::Data(data)) = (observed.direction, observed.frame) {
            let mut streams = self.streams.lock().expect("no panic");
            streams.push(data.stream_id.value());
            self.data_sent.notify_one();
        }
    }
}

const PICTURE: &str = "/image/png";
const STYLE: &str = "/text/css";

/// `bytes` of what the path names: a content-type, or none; a CONNECT has no path, and gets a picture.
fn respond(request: &Request<Body>, bytes: usize) -> Response<Body> {
    let mut response = Response::new(Body::from(pattern(bytes)));
    let path = match *request.method() {
        Method::CONNECT => PICTURE,
        _ => request.uri().path(),
    };
    let kind = path.trim_start_matches('/');
    if !kind.is_empty() {
        let kind = kind.parse().expect("a header value");
        response.headers_mut().insert("content-type", kind);
    }
    response
}

/// The turns of two answers of 48 KiB that are requested at once.
async fn turns(requests: [(Request<Body>, Priority); 2]) -> Vec<u32> {
    let (near, far) = pipe();
    let turns = Arc::new(Turns::default());
    let runtime = runtime();
    let builder = server::Builder::new(Version::V31).observer(turns.clone());
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime.clone());
    // Both requests are in the first bytes that the server reads.
    let exchanges = requests.map(|(request, priority)| session.request(request, priority));
    connection.spawn();
    let respond = |request| std::future::ready(respond(&request, 48 * 1024));
    tokio::spawn(builder.serve(far, runtime, respond));
    for exchange in exchanges {
        assert_eq!(
            bytes_of(exchange.await.expect("a response")).await.len(),
            48 * 1024
        );
    }
    turns.so_far()
}

#[tokio::test]
async fn without_client_priorities_the_content_type_decides() {
    let requests = [PICTURE, STYLE].map(|path| (get(path), Priority::HIGHEST));
    assert_eq!(turns(requests).await, [3, 3, 3, 1, 1, 1]);
}

#[tokio::test]
async fn client_priorities_are_followed() {
    let requests = [
        (get(PICTURE), Priority::HIGHEST),
        (get(STYLE), Priority::LOWEST),
    ];
    assert_eq!(turns(requests).await, [1, 1, 1, 3, 3, 3]);
}

/// They went behind every page, a frame in sixteen.
#[tokio::test]
async fn tunnels_and_event_streams_take_turns_with_a_page() {
    let tunnel = Request::builder().method(Method::CONNECT);
    let tunnel = tunnel.uri("example.org:443").body(Body::empty());
    for second_request in [
        get("/text/event-stream"),
        get("/"),
        tunnel.expect("a request"),
    ] {
        let what = format!("{second_request:?}");
        let requests =
            [get("/text/html"), second_request].map(|request| (request, Priority::HIGHEST));
        assert_eq!(turns(requests).await, [1, 3, 1, 3, 1, 3], "{what}");
    }
}

/// The order hung on whether the second request came in the same read as the first.
#[tokio::test]
async fn a_later_priority_reorders_responses_in_progress() {
    const FRAMES: usize = 32; // of which pipe and driver hold some ten
    const BYTES: usize = FRAMES * 16 * 1024;
    let ((near, relay_near), (relay_far, far)) = (pipe(), pipe());
    let turns = Arc::new(Turns::default());
    let runtime = runtime();
    let mut builder = server::Builder::new(Version::V31).observer(turns.clone());
    builder.config_mut().starvation_guard = 0; // no frame out of turn
    let (request_sender, mut request_receiver) = mpsc::unbounded_channel();
    let respond = move |request| {
        request_sender.send(()).expect("the test listens");
        std::future::ready(respond(&request, BYTES))
    };
    tokio::spawn(builder.serve(far, runtime.clone(), respond));
    // The server's output is held until both were requested.
    let gate = Arc::new(Notify::new());
    let opening = gate.clone();
    let (mut from_near, mut to_near) = tokio::io::split(relay_near);
    let (mut from_far, mut to_far) = tokio::io::split(relay_far);
    tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_near, &mut to_far).await;
        let _ = to_far.shutdown().await;
    });
    tokio::spawn(async move {
        opening.notified().await;
        let _ = tokio::io::copy(&mut from_far, &mut to_near).await;
    });
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime);
    connection.spawn();
    let loading = async {
        let picture = session.request(get(PICTURE), Priority::HIGHEST);
        request_receiver.recv().await.expect("a request");
        turns.data_sent.notified().await;
        // Behind the picture by the client, before it by their kinds.
        let style = session.request(get(STYLE), Priority::new(3));
        request_receiver.recv().await.expect("a request");
        gate.notify_one();
        for exchange in [picture, style] {
            let body = bytes_of(exchange.await.expect("a response")).await;
            assert_eq!(body.len(), BYTES);
        }
    };
    timeout(WAIT_LIMIT, loading).await.expect("both, in time");
    assert_eq!(turns.so_far(), [[1; FRAMES], [3; FRAMES]].concat());
}
