//! Trailers of requests and responses that are no gRPC calls.

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use spdy::body::{Body, BoxError};
use spdy_frame::priority::Priority;
use spdy_net::protocol::Protocol;
use tokio::io::AsyncReadExt;

use crate::support::stage::{HOME, SPDY};
use crate::support::wire::{Between, write};

/// A body with `text` and trailers.
fn body(text: &'static str, fields: &[(&'static str, &'static str)]) -> Body {
    let trailers: HeaderMap = fields
        .iter()
        .map(|(name, value)| {
            let name = HeaderName::from_static(name);
            (name, HeaderValue::from_static(value))
        })
        .collect();
    let frames = [
        Frame::data(Bytes::from_static(text.as_bytes())),
        Frame::trailers(trailers),
    ];
    let frames = frames.map(Ok::<_, BoxError>);
    Body::wrap(StreamBody::new(futures_util::stream::iter(frames)))
}

/// Responds with trailers. The response to POST has the names of those of the request as its text.
async fn origin(request: Request<Body>) -> Response<Body> {
    let (head, sent) = request.into_parts();
    let storage = match head.uri.path() {
        "/stored" => "max-age=600",
        _ => "no-store",
    };
    let response = Response::builder()
        .header("cache-control", storage)
        .header("content-type", "application/octet-stream")
        .header("trailer", "x-sum, set-cookie");
    let trailers = [("x-sum", "6"), ("set-cookie", "a=b")];
    let text = match sent.collect().await {
        Ok(sent) => sent.trailers().map_or(String::new(), |trailers| {
            format!("{:?}", trailers.keys().collect::<Vec<_>>())
        }),
        Err(error) => error.to_string(),
    };
    let text = if text.is_empty() {
        "text".to_owned()
    } else {
        text
    };
    response
        .body(body(text.leak(), &trailers))
        .expect("a response")
}

fn get(target: &str) -> Request<Body> {
    let request = Request::get(format!("{HOME}{target}")).header("te", "trailers");
    request.body(Body::empty()).expect("a request")
}

#[tokio::test]
async fn trailers_of_a_chunked_response_reach_clients_unless_it_is_stored() {
    let mut between = Between::start("");
    between.serve_origin(origin);
    for protocol in [Protocol::Http2, SPDY] {
        let client = between.connection(protocol).await;
        // Clients of SPDY may fail on trailers.
        let passed = usize::from(protocol != SPDY);
        for (target, expected) in [("/", passed), ("/stored", 0), ("/stored", 0)] {
            let request = get(target);
            let response = between
                .wait(client.send(request, Priority::HIGHEST))
                .await
                .0;
            let response = response.expect("a response").into_body();
            let response = between.wait(response.collect()).await.0.expect("a body");
            let count = response.trailers().map_or(0, HeaderMap::len);
            assert_eq!(count, expected, "{protocol} {target}");
            assert_eq!(response.to_bytes(), "text");
        }
    }
}

#[tokio::test]
async fn clients_of_http1_get_trailers_that_they_accept() {
    let mut between = Between::start("");
    between.serve_origin(origin);
    for (te, expected) in [("trailers", true), ("gzip", false)] {
        let (mut client, _) = between.client();
        write(
            &mut client,
            &format!(
                "GET / HTTP/1.1\r\nhost: www.site.test\r\nte: {te}\r\nconnection: close\r\n\r\n"
            ),
        )
        .await;
        let mut response = String::new();
        let read = between.wait(client.read_to_string(&mut response)).await.0;
        read.expect("a response");
        assert_eq!(
            response.contains("trailer: x-sum\r\n"),
            expected,
            "{response}"
        );
        assert_eq!(
            response.ends_with("\r\n0\r\nx-sum: 6\r\n\r\n"),
            expected,
            "{response}"
        );
        assert!(
            response.ends_with("\r\n\r\n") && !response.contains("a=b"),
            "{response}"
        );
    }
}

/// A server may merge them into the head, where the proxy has checked and set fields.
#[tokio::test]
async fn an_origin_gets_no_trailers_that_are_fields_of_the_head() {
    let rule = "---[[site.paths]]\npath = '/'\nrequest_headers = { X-Env = 'live' }\n\
                [[site.paths]]\npath = '/call'\ngrpc = true\nrequest_headers = { X-Env = 'live' }\n";
    let mut between = Between::start(rule);
    between.serve_origin_by(Protocol::Http2, origin);
    let client = between.connection(Protocol::Http2).await;
    let trailers = [
        ("x-sum", "6"),
        ("x-env", "test"),
        ("authorization", "Basic eDp5"),
        ("x-forwarded-for", "192.0.2.9"),
        ("client-cert", ":AA==:"),
        ("via", "1.1 www.site.test"),
    ];
    let request = Request::post(format!("{HOME}/call")).header("content-type", "application/grpc");
    let request = request.body(body("text", &trailers)).expect("a request");
    let response = between
        .wait(client.send(request, Priority::HIGHEST))
        .await
        .0;
    let response = response.expect("a response").into_body();
    let response = between.wait(response.collect()).await.0.expect("a body");
    assert_eq!(response.to_bytes(), "[\"x-sum\"]");
}
