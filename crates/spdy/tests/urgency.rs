//! Whose answer goes first where the client ranks its requests, and where it does not.

mod support;

use std::sync::{Arc, Mutex};

use http::Response;
use spdy::{Body, Direction, Frame, Observe, Priority, Seen, Version, client, server};
use support::{bytes_of, get, pattern, pipe, runtime};

/// The streams of a server's DATA frames, in the order of the wire.
#[derive(Default)]
struct Turns(Mutex<Vec<u32>>);

impl Observe for Turns {
    fn seen(&self, seen: &Seen<'_>) {
        if let (Direction::Sent, Frame::Data(data)) = (seen.direction, seen.frame) {
            self.0
                .lock()
                .expect("no panic")
                .push(data.stream_id.value());
        }
    }
}

/// The turns of two answers of 48 KiB, a picture and a style sheet, asked for at once.
async fn turns(picture: Priority, style: Priority) -> Vec<u32> {
    let (near, far) = pipe();
    let turns = Arc::new(Turns::default());
    let runtime = runtime();
    let serving = server::Builder::new(Version::V31).observer(turns.clone());
    let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime.clone());
    // Both stand in the first bytes that the server reads.
    let asked = [
        session.request(get("/a.png"), picture),
        session.request(get("/a.css"), style),
    ];
    connection.spawn();
    let answer = |request: http::Request<Body>| {
        let kind = match request.uri().path() {
            "/a.png" => "image/png",
            _ => "text/css",
        };
        let response = Response::builder().header("content-type", kind);
        let response = response.body(Body::from(pattern(48 * 1024)));
        std::future::ready(response.expect("a response"))
    };
    tokio::spawn(serving.serve(far, runtime, answer));
    for asked in asked {
        assert_eq!(
            bytes_of(asked.await.expect("an answer")).await.len(),
            48 * 1024
        );
    }
    turns.0.lock().expect("no panic").clone()
}

#[tokio::test]
async fn where_all_is_said_to_be_most_urgent_the_kind_of_the_answers_decides() {
    let turns = turns(Priority::HIGHEST, Priority::HIGHEST).await;
    assert_eq!(turns, [3, 3, 3, 1, 1, 1]);
}

#[tokio::test]
async fn a_client_that_ranks_its_requests_has_its_will() {
    let turns = turns(Priority::HIGHEST, Priority::LOWEST).await;
    assert_eq!(turns, [1, 1, 1, 3, 3, 3]);
}
