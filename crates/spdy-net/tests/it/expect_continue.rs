//! `Expect: 100-continue` of a client over HTTP/2: when the body is sent, and when it never is. In virtual time, against the h2 crate.

use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt;
use h2::server::SendResponse;
use h2::{Reason, RecvStream};
use http::{Request, Response, StatusCode};
use spdy::body::Body;
use spdy::runtime::SharedRuntime;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::error::ExchangeError;
use spdy_net::protocol::Protocol;
use spdy_testkit::clock::Clock;
use tokio::task::JoinHandle;

use crate::support::{PIPE, read};

/// An exchange whose request head has reached the server.
struct Exchange {
    clock: Clock,
    response: JoinHandle<Result<Response<Body>, ExchangeError>>,
    request_body: RecvStream,
    respond: SendResponse<Bytes>,
    _connection: Connection,
}

impl Exchange {
    async fn start() -> Self {
        let (near, far) = tokio::io::duplex(PIPE);
        let clock = Clock::default();
        let (options, runtime) = (ClientOptions::default(), SharedRuntime::new(clock.clone()));
        let io = Box::new(near);
        let starting = Connection::start(io, Protocol::Http2, 0, &options, &runtime);
        let (client, server) = tokio::join!(starting, h2::server::handshake(far));
        let (client, mut server) = (client.expect("a connection"), server.expect("a connection"));
        let request = Request::post("http://localhost/")
            .header("expect", "100-continue")
            .body(Body::full("body"))
            .expect("a request");
        let response = tokio::spawn(client.send(request, Priority::HIGHEST));
        let accepted = server.accept().await.expect("a request");
        let (request, respond) = accepted.expect("a valid request");
        assert_eq!(request.headers()["expect"], "100-continue");
        tokio::spawn(async move { while server.accept().await.is_some() {} });
        Self {
            clock,
            response,
            request_body: request.into_body(),
            respond,
            _connection: client,
        }
    }

    /// The request's DATA that has arrived after `span`; `None` if there is none, nor an end.
    async fn data_after(&mut self, span: Duration) -> Option<Result<Bytes, h2::Error>> {
        self.clock.advance(span).await;
        self.clock.advance(Duration::ZERO).await;
        self.request_body.data().now_or_never().flatten()
    }
}

fn head(status: StatusCode) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = status;
    head
}

#[tokio::test]
async fn an_http2_body_is_sent_when_the_server_responds_with_100() {
    let mut exchange = Exchange::start().await;
    let early = exchange.data_after(Duration::from_millis(900)).await;
    assert!(early.is_none(), "{early:?}");
    let interim = head(StatusCode::CONTINUE);
    exchange.respond.send_informational(interim).expect("sent");
    let data = exchange.data_after(Duration::ZERO).await;
    assert_eq!(data.expect("data").expect("no reset"), "body");
    let created = head(StatusCode::CREATED);
    exchange.respond.send_response(created, true).expect("sent");
    let response = exchange.response.await.expect("no panic");
    assert_eq!(response.expect("a response").status(), StatusCode::CREATED);
}

#[tokio::test]
async fn no_http2_body_is_sent_once_the_server_has_begun_its_response() {
    for has_content in [false, true] {
        let mut exchange = Exchange::start().await;
        let refusal = head(StatusCode::PAYLOAD_TOO_LARGE);
        let sending = exchange.respond.send_response(refusal, !has_content);
        let mut sending = sending.expect("sent");
        if has_content {
            let data = exchange.data_after(Duration::from_secs(2)).await;
            assert!(data.is_none(), "before the response ends: {data:?}");
            sending.send_data("too large".into(), true).expect("sent");
        }
        exchange.clock.advance(Duration::ZERO).await;
        let response = (&mut exchange.response).await.expect("no panic");
        let response = response.expect("a response");
        assert_eq!(response.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let content = read(response).await.expect("the whole response");
        assert_eq!(content, if has_content { "too large" } else { "" });
        let data = exchange.data_after(Duration::from_secs(2)).await;
        let reset = data.expect("the upload ends").expect_err("it is reset");
        assert_eq!(reset.reason(), Some(Reason::CANCEL), "{has_content}");
    }
}

#[tokio::test]
async fn an_http2_body_is_sent_after_a_second_without_a_response() {
    let mut exchange = Exchange::start().await;
    let early = exchange.data_after(Duration::from_millis(999)).await;
    assert!(early.is_none(), "{early:?}");
    let data = exchange.data_after(Duration::from_millis(1)).await;
    assert_eq!(data.expect("data").expect("no reset"), "body");
}
