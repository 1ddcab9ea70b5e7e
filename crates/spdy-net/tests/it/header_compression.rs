//! Bytes of headers on the wire: compression windows, secrets, and the counts of each protocol.

use http::{Request, Response};
use spdy::body::Body;
use spdy_frame::priority::Priority;
use spdy_frame::secrets::Secrets;
use spdy_frame::version::Version;
use spdy_net::connection::ClientOptions;
use spdy_net::protocol::Protocol;
use spdy_net::serve::ServerOptions;

use crate::support::{ALL, connection, connection_with, echo, get, read};

/// Repeats the client's `accept` as the content type.
async fn accepted(request: Request<Body>) -> Response<Body> {
    let accept = request
        .headers()
        .get("accept")
        .expect("the header is sent")
        .clone();
    let response = Response::builder().header("content-type", accept);
    response.body(Body::empty()).expect("valid")
}

#[tokio::test]
async fn partial_value_matches_need_the_option_of_that_side() {
    // The second begins like the first. An attacker that sees this in the length can guess the rest.
    let tokens = ["qJ7mZ2xW9vK4tR8y-1", "qJ7mZ2xW9vK4tR8y-2"];
    let respond = |request: Request<Body>| async move {
        let token = request
            .headers()
            .get("x-token")
            .expect("the header is sent")
            .clone();
        let response = Response::builder().header("x-token", token);
        response.body(Body::empty()).expect("valid")
    };
    for version in Version::ALL {
        let mut lengths = Vec::new();
        for secrets in [Secrets::none(), Secrets::default()] {
            let protocol = Protocol::Spdy(version);
            let mut server = ServerOptions::default();
            server.spdy.secrets = secrets.clone();
            let mut client = ClientOptions::default();
            client.spdy.secrets = secrets;
            let connection = connection_with(protocol, respond, server, &client).await;
            let mut last = [0, 0];
            let mut added = [0, 0];
            for token in tokens {
                let mut request = get("/");
                let value = http::HeaderValue::from_static(token);
                request.headers_mut().insert("x-token", value);
                connection.send(request, Priority::HIGHEST).await.unwrap();
                let bytes = connection.header_bytes();
                let now = [bytes.sent, bytes.received];
                added = [now[0] - last[0], now[1] - last[1]];
                last = now;
            }
            lengths.push(added);
        }
        for side in [0, 1] {
            let (partial_values, whole_values_only) = (lengths[0][side], lengths[1][side]);
            assert!(
                partial_values + 10 <= whole_values_only,
                "SPDY/{version}: {partial_values} bytes, and {whole_values_only}"
            );
        }
    }
}

#[tokio::test]
async fn values_beyond_the_compression_window_are_written_again() {
    // More than 2 KiB, and nothing of it twice.
    let token = (0..600).fold(String::new(), |token, number: u32| {
        format!("{token}{:05x}", number.wrapping_mul(2_654_435_761) >> 12)
    });
    for version in Version::ALL {
        let mut totals = Vec::new();
        for bits in [Some(15), None, Some(11)] {
            let protocol = Protocol::Spdy(version);
            let mut server = ServerOptions::default();
            server.spdy.compression_window_bits = bits;
            let mut client = ClientOptions::default();
            client.spdy.compression_window_bits = bits;
            let connection = connection_with(protocol, accepted, server, &client).await;
            for _ in 0..2 {
                let mut request = get("/");
                let value = http::HeaderValue::from_str(&token).unwrap();
                request.headers_mut().insert("accept", value);
                connection.send(request, Priority::HIGHEST).await.unwrap();
            }
            let bytes = connection.header_bytes();
            totals.push([bytes.sent, bytes.received]);
        }
        for side in [0, 1] {
            let [large_window, default_window, small_window] =
                [0, 1, 2].map(|index: usize| totals[index][side]);
            assert!(
                large_window + 1000 < small_window,
                "SPDY/{version}: {large_window}, {small_window}"
            );
            assert!(
                default_window < large_window + 100,
                "SPDY/{version}: {large_window}, {default_window}"
            );
        }
    }
}

#[tokio::test]
async fn header_bytes_on_the_wire_are_those_of_the_protocol() {
    for protocol in ALL {
        let connection = connection(protocol, echo).await;
        let mut last = connection.header_bytes();
        let mut sizes = Vec::new();
        for _ in 0..2 {
            assert!(connection.ready().await);
            let request = Request::get("http://localhost/1000")
                .header("user-agent", "a program with a long name, as they were")
                .body(Body::empty());
            let response = connection
                .send(request.unwrap(), Priority::HIGHEST)
                .await
                .unwrap();
            read(response).await.unwrap();
            let now = connection.header_bytes();
            sizes.push((now.sent - last.sent, now.received - last.received));
            last = now;
        }
        let [(sent, received), (sent_again, received_again)] = sizes[..] else {
            unreachable!()
        };
        assert!(sent > 20 && received > 20, "{protocol}: {sizes:?}");
        if protocol == Protocol::Http1 {
            assert_eq!((sent, received), (sent_again, received_again));
        } else {
            assert!(
                sent_again < sent && received_again < received,
                "{protocol}: {sizes:?}"
            );
        }
    }
}
