//! What the lengths of compressed headers reveal about private values, in both directions.

use std::sync::{Arc, Mutex};

use http::{HeaderValue, Request, Response};
use spdy::{Body, Priority, Secrets, Version, client, server};
use spdy_frame::frame::{Frame, SynReply, SynStream};
use spdy_session::observe::{Direction, Observe, ObservedFrame};

use crate::support;

const SECRET: &str = "4f1c2ab98e77d03356aa";
const OTHER_SECRET: &str = "ZqWxYvKuJtHsGrFpEoDn";
/// The requests that the attacker makes both sides send.
const GUESS: &str = SECRET;

/// The lengths of the compressed blocks that one end wrote, bytes.
#[derive(Default)]
struct Lengths(Mutex<Vec<usize>>);

impl Observe for Lengths {
    fn seen(&self, observed: &ObservedFrame<'_>) {
        if let (
            Direction::Sent,
            Frame::SynStream(SynStream { block, .. }) | Frame::SynReply(SynReply { block, .. }),
        ) = (observed.direction, observed.frame)
        {
            self.0.lock().expect("no panic").push(block.len());
        }
    }
}

/// Lengths of requests and of responses in a session where each side sends a secret in `header`, marked if `is_marked`, and
/// both send what an attacker guesses.
async fn lengths_with_secret(
    header: &'static str,
    is_marked: bool,
    secret: &'static str,
) -> (Vec<usize>, Vec<usize>) {
    let value = move || {
        let mut value = HeaderValue::from_static(secret);
        value.set_sensitive(is_marked);
        value
    };
    let (requests, responses) = (Arc::<Lengths>::default(), Arc::<Lengths>::default());
    let client = client::Builder::new(Version::V31).observer(requests.clone());
    let server = server::Builder::new(Version::V31).observer(responses.clone());
    let (session, _) =
        support::connect_to_service_with(client, server, move |request| async move {
            Response::builder()
                .header(header, value())
                .header("content-type", request.headers()["accept"].clone())
                .body(Body::empty())
                .expect("a response by hand")
        });
    for path in ["", GUESS, "again"] {
        let request = Request::get(format!("https://example.org/{path}"))
            .header(header, value())
            .header("accept", format!("text/{path}"))
            .body(Body::empty())
            .expect("a request by hand");
        let response = session
            .request(request, Priority::HIGHEST)
            .await
            .expect("a response");
        assert_eq!(response.headers()[header], secret);
    }
    let snapshot = |lengths: &Lengths| lengths.0.lock().expect("no panic").clone();
    (snapshot(&requests), snapshot(&responses))
}

#[tokio::test]
async fn lengths_reveal_no_unknown_header_and_no_marked_value() {
    for (header, is_marked) in [
        ("x-api-key", false),
        ("x-csrf-token", false),
        ("location", false),
        ("server", true),
    ] {
        let right_guess = lengths_with_secret(header, is_marked, SECRET).await;
        assert_eq!(
            right_guess,
            lengths_with_secret(header, is_marked, OTHER_SECRET).await,
            "{header}"
        );
    }
    // The attack works where a value is public.
    let (right_guess, wrong_guess) = (
        lengths_with_secret("server", false, SECRET).await,
        lengths_with_secret("server", false, OTHER_SECRET).await,
    );
    assert!(right_guess.0.iter().sum::<usize>() + 8 < wrong_guess.0.iter().sum());
    assert!(right_guess.1.iter().sum::<usize>() + 8 < wrong_guess.1.iter().sum());
}

/// Bytes of the last of three requests with the same cookie.
async fn third_request(client: client::Builder) -> usize {
    let lengths = Arc::<Lengths>::default();
    let client = client.observer(lengths.clone());
    let server = server::Builder::new(Version::V31);
    let (session, _) = support::connect_to_service_with(client, server, |_| async {
        Response::new(Body::empty())
    });
    for _ in 0..3 {
        let request = Request::get("https://example.org/")
            .header("cookie", format!("sid={}", SECRET.repeat(5)))
            .body(Body::empty())
            .expect("a request by hand");
        session
            .request(request, Priority::HIGHEST)
            .await
            .expect("a response");
    }
    let lengths = lengths.0.lock().expect("no panic");
    lengths[2]
}

#[tokio::test]
async fn a_repeated_cookie_is_short_unless_matches_are_off() {
    let builder = || client::Builder::new(Version::V31);
    let indexed = third_request(builder()).await;
    assert!(indexed < 30, "{indexed} bytes");
    let strict = builder().secrets(Secrets::default().whole_matches(false));
    let strict = third_request(strict).await;
    assert!(strict > indexed + 90, "{strict} bytes, and {indexed}");
}
