//! Unusual responses of peers, built by hand on raw streams.

use bytes::Bytes;
use http_body_util::BodyExt;
use spdy::{Body, Error, HeaderBlock, Priority, RstStatus, Stream, Version, client, server};
use spdy_testkit::wait::WAIT_LIMIT;

use crate::support::{self, bytes_of, get, pipe, runtime};

fn block(pairs: &[(&'static str, &'static str)]) -> HeaderBlock {
    pairs.iter().copied().collect()
}

/// Waits, not for ever, for a condition without a notification.
async fn until(mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    let result = tokio::time::timeout(WAIT_LIMIT, wait).await;
    result.expect("the wait succeeds");
}

const OK: [(&str, &str); 2] = [(":status", "200"), (":version", "HTTP/1.1")];

/// A client, and the server's end of the one request it will make.
struct OddServer {
    session: client::Session,
    accept: server::Accept,
}

impl OddServer {
    fn new() -> Self {
        let (near, far) = pipe();
        let runtime = runtime();
        let (accept, server_connection) =
            server::Builder::new(Version::V31).handshake(far, runtime.clone());
        server_connection.spawn();
        let (session, connection) = client::Builder::new(Version::V31).handshake(near, runtime);
        connection.spawn();
        Self { session, accept }
    }

    async fn exchange(
        &mut self,
        request: http::Request<Body>,
        reply: &[(&'static str, &'static str)],
    ) -> (client::ResponseFuture, Stream) {
        let response = self.session.request(request, Priority::HIGHEST);
        let stream = self
            .accept
            .next()
            .await
            .expect("a stream")
            .accept_raw(&block(reply))
            .expect("open");
        (response, stream)
    }
}

#[tokio::test]
async fn a_100_is_followed_by_the_real_head() {
    let mut server = OddServer::new();
    let (response, mut stream) = server
        .exchange(get("/"), &[(":status", "100"), (":version", "HTTP/1.1")])
        .await;
    stream
        .send_headers(
            &block(&[(":status", "201 Created"), (":version", "HTTP/1.1")]),
            false,
        )
        .expect("open");
    stream
        .send(Bytes::from_static(b"done"))
        .await
        .expect("open");
    stream.finish().expect("open");
    let response = response.await.expect("a response");
    assert_eq!(response.status(), 201);
    assert_eq!(bytes_of(response).await, "done");
}

#[tokio::test]
async fn several_interim_heads_may_come_before_the_real_one() {
    let mut server = OddServer::new();
    let (response, mut stream) = server
        .exchange(get("/"), &[(":status", "103"), (":version", "HTTP/1.1")])
        .await;
    for status in ["100", "200 OK"] {
        stream
            .send_headers(
                &block(&[(":status", status), (":version", "HTTP/1.1")]),
                false,
            )
            .expect("open");
    }
    stream.finish().expect("open");
    assert_eq!(response.await.expect("a response").status(), 200);
}

#[tokio::test]
async fn data_after_a_100_is_no_response() {
    let mut server = OddServer::new();
    let (response, mut stream) = server
        .exchange(get("/"), &[(":status", "100"), (":version", "HTTP/1.1")])
        .await;
    stream
        .send(Bytes::from_static(b"early"))
        .await
        .expect("open");
    assert!(matches!(response.await, Err(Error::Response(_))));
    assert_eq!(
        stream.failed().await.and_then(|error| error.reset_status()),
        Some(RstStatus::PROTOCOL_ERROR)
    );
}

/// HEADERS before DATA joined the head if they had arrived before the first poll.
#[tokio::test]
async fn headers_after_the_head_are_trailers_and_do_not_delay_it() {
    let mut server = OddServer::new();
    let (response, mut stream) = server.exchange(get("/"), &OK).await;
    let send_header = |stream: &mut Stream, name| {
        let result = stream.send_headers(&block(&[(name, "1")]), false);
        result.expect("open");
    };
    send_header(&mut stream, "x-early");
    let response = response.await.expect("a response, before any data");
    assert!(response.headers().is_empty());
    stream
        .send(Bytes::from_static(b"body"))
        .await
        .expect("open");
    send_header(&mut stream, "x-late");
    stream.finish().expect("open");
    let body = response.into_body().collect().await.expect("a body");
    let trailers = body.trailers().expect("trailers");
    assert_eq!(
        (&trailers["x-early"], &trailers["x-late"]),
        (
            &"1".parse().expect("a value"),
            &"1".parse().expect("a value")
        )
    );
    assert_eq!(body.to_bytes(), "body");
}

#[tokio::test]
async fn repeated_names_in_headers_before_data_reset_the_stream() {
    for (name, what) in [
        ("x", "\"x\" occurs twice"),
        (":status", "not allowed in trailers"),
    ] {
        let mut server = OddServer::new();
        let (response, mut stream) = server.exchange(get("/"), &[OK[0], OK[1], ("x", "1")]).await;
        let result = stream.send_headers(&block(&[(name, "2")]), false);
        result.expect("open");
        stream
            .send(Bytes::from_static(b"body"))
            .await
            .expect("open");
        let response = response.await.expect("a response");
        let error = response.into_body().collect().await.expect_err("a fault");
        assert!(error.to_string().contains(what), "{error}");
        assert_eq!(
            stream.failed().await.and_then(|error| error.reset_status()),
            Some(RstStatus::PROTOCOL_ERROR)
        );
    }
}

/// It was a body of four bytes if its end had arrived before the first poll.
#[tokio::test]
async fn data_with_fin_after_a_204_is_an_error_even_if_early() {
    let mut server = OddServer::new();
    let (response, mut stream) = server
        .exchange(get("/"), &[(":status", "204"), (":version", "HTTP/1.1")])
        .await;
    stream
        .send(Bytes::from_static(b"body"))
        .await
        .expect("open");
    stream.finish().expect("open");
    until(|| server.session.active_streams() == 0).await;
    let response = response.await.expect("a response");
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn a_reply_that_is_no_response_is_reset() {
    for reply in [
        &[][..],
        &[(":version", "HTTP/1.1")],
        &[(":status", "yes"), (":version", "HTTP/1.1")],
    ] {
        let mut server = OddServer::new();
        let (response, mut stream) = server.exchange(get("/"), reply).await;
        assert!(
            matches!(response.await, Err(Error::Response(_))),
            "{reply:?}"
        );
        assert_eq!(
            stream.failed().await.and_then(|error| error.reset_status()),
            Some(RstStatus::PROTOCOL_ERROR)
        );
    }
}

#[tokio::test]
async fn data_in_response_to_head_is_a_fault() {
    let mut server = OddServer::new();
    let head = http::Request::head("http://example.org/")
        .body(Body::empty())
        .expect("valid");
    let (response, mut stream) = server.exchange(head, &OK).await;
    let response = response.await.expect("a response");
    stream
        .send(Bytes::from_static(b"body"))
        .await
        .expect("open");
    assert_eq!(
        stream.failed().await.and_then(|error| error.reset_status()),
        Some(RstStatus::PROTOCOL_ERROR)
    );
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test]
async fn an_empty_data_in_response_to_head_is_its_end() {
    let mut server = OddServer::new();
    let head = http::Request::head("http://example.org/")
        .body(Body::empty())
        .expect("valid");
    let (response, mut stream) = server.exchange(head, &OK).await;
    let response = response.await.expect("a response");
    stream.finish().expect("open");
    assert_eq!(bytes_of(response).await, "");
}

#[tokio::test]
async fn a_complete_response_survives_a_reset_of_the_request() {
    let mut server = OddServer::new();
    let upload =
        Body::from_stream(futures_util::stream::pending::<Result<Bytes, std::io::Error>>());
    let (response, mut stream) = server.exchange(support::post("/", upload), &OK).await;
    stream
        .send(Bytes::from_static(b"enough"))
        .await
        .expect("open");
    stream.finish().expect("open");
    let response = response.await.expect("a response");
    assert_eq!(bytes_of(response).await, "enough");
    stream.reset(RstStatus::CANCEL);
    until(|| server.session.active_streams() == 0).await;
}

#[tokio::test]
async fn data_in_a_304_response_is_dropped() {
    let mut server = OddServer::new();
    let (response, mut stream) = server
        .exchange(get("/"), &[(":status", "304"), (":version", "HTTP/1.1")])
        .await;
    stream
        .send(Bytes::from_static(b"body"))
        .await
        .expect("open");
    until(|| server.session.stats().received_data_bytes >= 4).await;
    let response = response.await.expect("a response");
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(
        stream.failed().await.and_then(|error| error.reset_status()),
        Some(RstStatus::PROTOCOL_ERROR)
    );
}
