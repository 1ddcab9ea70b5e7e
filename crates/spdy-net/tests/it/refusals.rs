//! Invalid requests, to which a connection responds by itself: its handler does not respond, but is notified.

use std::sync::{Arc, Mutex};

use http::{Request, Response};
use spdy::body::Body;
use spdy::client::{Builder, OpenOptions};
use spdy::runtime::BoxFuture;
use spdy_frame::version::Version;
use spdy_net::handler::Handler;
use spdy_net::latch::Latch;
use spdy_net::network::BoxIo;
use spdy_net::protocol::Protocol;
use spdy_net::refusal::Refusal;
use spdy_net::serve::{ServerOptions, serve_connection};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support;

/// Half of what hyper lets pass at least: what is longer by little is refused by us, what is longer by more by hyper.
const MAX_HEAD_BYTES: usize = 4096;

/// Responds to each request, and records the refusals.
#[derive(Clone, Default)]
struct RecordingHandler(Arc<Mutex<Vec<String>>>);

impl RecordingHandler {
    fn reports(&self) -> Vec<String> {
        self.0.lock().expect("no thread panicked").clone()
    }

    fn serve(&self, protocol: Protocol) -> BoxIo {
        let options = ServerOptions::default();
        support::serve(&[protocol], self.clone(), None, options, Latch::new())
    }

    /// The response over HTTP/1.1 to `request`, all of which can be read at once.
    async fn response_to(&self, request: &str) -> String {
        let (mut near, far) = tokio::io::duplex(4 * request.len());
        near.write_all(request.as_bytes())
            .await
            .expect("there is room");
        let handler = Arc::new(self.clone());
        tokio::spawn(async move {
            let mut options = ServerOptions::default();
            options.max_head_bytes = MAX_HEAD_BYTES;
            let runtime = support::runtime();
            let (far, http1) = (Box::new(far), &[Protocol::Http1]);
            let stop = Latch::new();
            serve_connection(far, handler, http1, None, &options, &runtime, &stop).await
        });
        let mut response = String::new();
        near.read_to_string(&mut response).await.expect("it closes");
        response
    }
}

impl Handler for RecordingHandler {
    fn answer(&self, _: Request<Body>) -> BoxFuture<Response<Body>> {
        Box::pin(async { Response::new(Body::empty()) })
    }

    fn refused(&self, refusal: &Refusal<'_>) {
        let Refusal {
            protocol,
            method,
            uri,
            headers,
            body_bytes,
            flaw,
        } = refusal;
        assert_eq!(headers.is_some(), method.is_some());
        let method = method.map_or("-", http::Method::as_str);
        let uri = uri.map_or("-".to_owned(), ToString::to_string);
        let (status, flaw) = (flaw.status().as_u16(), flaw.name());
        let report = format!("{protocol}: {method} {uri}: {status}, {flaw}, {body_bytes} bytes");
        self.0.lock().expect("no thread panicked").push(report);
    }
}

#[tokio::test]
async fn http1_refusals_report_the_parsed_part_of_the_request() {
    let long = |bytes| {
        let long = "x".repeat(bytes);
        format!("GET / HTTP/1.1\r\nhost: site.test\r\nlong: {long}\r\n\r\n")
    };
    let (long, longer) = (long(MAX_HEAD_BYTES), long(4 * MAX_HEAD_BYTES));
    for (request, status, expected) in [
        (
            "GET /a HTTP/1.1\r\n\r\n",
            "400",
            Some("http/1.1: GET /a: 400, host, 87 bytes"),
        ),
        (
            "PUT /a HTTP/1.1\r\nhost: site.test\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            "501",
            Some("http/1.1: PUT /a: 501, transfer-coding, 74 bytes"),
        ),
        (
            &long,
            "431",
            Some("http/1.1: GET /: 431, head-too-large, 0 bytes"),
        ),
        (
            &longer,
            "431",
            Some("http/1.1: - -: 431, head-too-large, 0 bytes"),
        ),
        (
            "GET /a b HTTP/1.1\r\nhost: site.test\r\n\r\n",
            "400",
            Some("http/1.1: - -: 400, malformed, 0 bytes"),
        ),
        (
            "GET /a HTTP/1.1\r\nhost: site.test\r\nconnection: close\r\n\r\n",
            "200",
            None,
        ),
    ] {
        let handler = RecordingHandler::default();
        let response = handler.response_to(request).await;
        let case = &request[..request.len().min(60)];
        assert_eq!(
            response.split(' ').nth(1),
            Some(status),
            "{case}: {response}"
        );
        assert_eq!(handler.reports(), Vec::from_iter(expected), "{case}");
    }
}

/// There is no response to it, and so no report.
#[tokio::test]
async fn an_http2_preface_after_an_http1_request_is_not_reported() {
    let handler = RecordingHandler::default();
    let request = "GET / HTTP/1.1\r\nhost: site.test\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let response = handler.response_to(request).await;
    assert_eq!(response.matches("HTTP/1.1 ").count(), 1, "{response}");
    assert_eq!(handler.reports(), [""; 0]);
}

#[tokio::test]
async fn http2_refusals_are_reported() {
    let handler = RecordingHandler::default();
    let io = handler.serve(Protocol::Http2);
    let (mut sender, connection) = h2::client::handshake(io).await.expect("a connection");
    let reading = tokio::spawn(connection);
    for host in ["other.test", "site.test"] {
        let request = Request::get("http://site.test/a").header("host", host);
        let request = request.body(()).expect("a request");
        let (response, _) = sender.send_request(request, true).expect("it is open");
        response.await.expect("a response");
    }
    reading.abort();
    assert_eq!(
        handler.reports(),
        ["h2: GET http://site.test/a: 400, malformed, 46 bytes"]
    );
}

#[tokio::test]
async fn spdy_refusals_are_reported() {
    let handler = RecordingHandler::default();
    let version = Version::V31;
    let io = handler.serve(Protocol::Spdy(version));
    let (session, connection) = Builder::new(version).handshake(io, support::runtime());
    let connection_task = tokio::spawn(connection.run());
    for host in [None, Some((":host", "site.test"))] {
        let headers = [
            (":method", "GET"),
            (":path", "/"),
            (":version", "HTTP/1.1"),
            (":scheme", "http"),
        ];
        let headers = headers.into_iter().chain(host).collect();
        let result = session.open(headers, OpenOptions::default()).await;
        let mut stream = result.expect("a stream");
        stream.reply().await.expect("a reply");
    }
    connection_task.abort();
    assert_eq!(
        handler.reports(),
        ["spdy/3.1: - -: 400, malformed, 0 bytes"]
    );
}
