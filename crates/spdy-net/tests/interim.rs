//! Interim answers (RFC 9110 §15.2), of servers that send them: early hints before the answer itself.

use std::sync::{Arc, Mutex};

use http::Response;
use spdy::body::Body;
use spdy_clock::Instant;
use spdy_frame::priority::Priority;
use spdy_net::connection::{ClientOptions, Connection};
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::tap::{Direction, Seen, Tap};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use support::{get, read};

mod support;

/// The heads that came, as a person would read them.
#[derive(Default)]
struct Heads(Mutex<Vec<String>>);

impl Tap for Heads {
    fn seen(&self, _: u64, _: Instant, direction: Direction, seen: &Seen<'_>) {
        let text = match seen {
            Seen::Http1Head(head) => String::from_utf8_lossy(head).into_owned(),
            Seen::Http2Headers { fields, .. } => format!("{fields:?}"),
            _ => return,
        };
        if direction == Direction::Received {
            self.0.lock().unwrap().push(text);
        }
    }
}

async fn answer_http1(mut io: DuplexStream) {
    let mut asked = [0; 1024];
    assert!(io.read(&mut asked).await.expect("a request") > 0);
    let answer = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n\
                  HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nhere";
    io.write_all(answer.as_bytes()).await.expect("it is read");
    let _ = io.read(&mut asked).await; // until the client leaves
}

async fn answer_http2(io: DuplexStream) {
    let mut connection = h2::server::handshake(io).await.expect("a client");
    while let Some(asked) = connection.accept().await {
        let (_, mut respond) = asked.expect("a request");
        let hints = Response::builder().status(103);
        let hints = hints.header("link", "</a.css>; rel=preload").body(());
        respond
            .send_informational(hints.expect("valid"))
            .expect("it is open");
        let mut body = respond
            .send_response(Response::new(()), false)
            .expect("it is open");
        body.send_data("here".into(), true).expect("it is open");
    }
}

#[tokio::test]
async fn early_hints_are_shown_and_are_not_the_answer() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let (near, far) = tokio::io::duplex(64 * 1024);
        match protocol {
            Protocol::Http1 => tokio::spawn(answer_http1(far)),
            _ => tokio::spawn(answer_http2(far)),
        };
        let heads = Arc::<Heads>::default();
        let options = ClientOptions {
            tap: Some(heads.clone()),
            ..ClientOptions::default()
        };
        let io: BoxIo = Box::new(near);
        let connection = Connection::start(io, protocol, 0, &options, &support::runtime())
            .await
            .expect("a connection");
        let answered: Response<Body> = connection
            .send(get("/"), Priority::HIGHEST)
            .await
            .expect("an answer");
        assert_eq!(answered.status(), 200, "{protocol}");
        assert!(!answered.headers().contains_key("link"), "{protocol}");
        assert_eq!(&read(answered).await.expect("its body")[..], b"here");
        let heads = heads.0.lock().unwrap().clone();
        assert_eq!(heads.len(), 2, "{protocol}: {heads:?}");
        assert!(
            heads[0].contains("103") && heads[0].contains("/a.css"),
            "{heads:?}"
        );
    }
}
