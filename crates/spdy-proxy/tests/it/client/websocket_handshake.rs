//! The handshake of a WebSocket: what the origin receives, and what a rejection, an error or another upgrade does. In virtual time.

use std::time::Duration;

use futures_util::FutureExt;
use spdy_proxy::telemetry::counters::CounterFamily;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::server::{Request, Response};

use crate::support::websocket::{AGREED, HANDSHAKE, HIDDEN, counts, requested};
use crate::support::wire::{Between, head, write};

#[tokio::test]
async fn upgrade_request_has_the_usual_proxy_headers() {
    let mut between = Between::start("");
    let (io, _serving) = between.client();
    let mut request = "ws://www.site.test/chat?room=7"
        .into_client_request()
        .expect("a URL");
    for (name, value) in [
        ("origin", "https://www.site.test"),
        ("cookie", "session=1"),
        ("sec-websocket-protocol", "chat"),
        ("x-forwarded-for", "203.0.113.9"),
        ("connection", "Upgrade, X-Hop"),
        ("x-hop", "1"),
        ("proxy-authorization", "Basic eA=="),
    ] {
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    let connect = tokio_tungstenite::client_async(request, io);
    let accept = async {
        let mut upgrade_request = None;
        #[expect(clippy::result_large_err, reason = "tungstenite wants it so")]
        let record = |request: &Request, mut response: Response| {
            upgrade_request = Some(request.clone());
            let protocol = "chat".parse().unwrap();
            response
                .headers_mut()
                .insert("sec-websocket-protocol", protocol);
            Ok(response)
        };
        let accepted =
            tokio_tungstenite::accept_hdr_async(between.next_connection().await, record).await;
        (
            accepted.expect("a handshake"),
            upgrade_request.expect("the origin received the request"),
        )
    };
    let (connected, (_origin, upgrade_request)) = tokio::join!(connect, accept);
    let (_client, response_head) = connected.expect("the origin agrees");
    assert_eq!(upgrade_request.uri(), "/chat?room=7");
    let field = |name| {
        upgrade_request
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap())
    };
    for (name, expected) in [
        ("host", Some("origin.test:8000")),
        ("origin", Some("https://www.site.test")),
        ("cookie", Some("session=1")),
        ("sec-websocket-protocol", Some("chat")),
        ("connection", Some("Upgrade")),
        ("upgrade", Some("websocket")),
        ("x-forwarded-for", Some("192.0.2.1")),
        ("x-forwarded-proto", Some("http")),
        ("x-forwarded-host", Some("www.site.test")),
        ("via", Some("1.1 www.site.test")),
        ("cdn-loop", Some("www.site.test")),
        ("x-hop", None),
        ("proxy-authorization", None),
    ] {
        assert_eq!(field(name), expected, "{name}");
    }
    assert_eq!(response_head.headers()["sec-websocket-protocol"], "chat");
    assert_eq!(response_head.headers()["via"], "1.1 www.site.test");
}

#[tokio::test]
async fn origin_rejection_is_forwarded_and_connection_stays() {
    let mut between = Between::start("");
    let (mut client, _serving) = between.client();
    for _ in 0..2 {
        write(&mut client, HANDSHAKE).await;
        let mut origin = between.next_connection().await;
        head(&mut origin).await;
        // What HTTP the origin speaks, and where else it is served, is nothing to a client of ours.
        let refusal = "HTTP/1.0 403 Forbidden\r\nContent-Length: 6\r\nX-Why: origin\r\nAlt-Svc: h3=\":443\"\r\n\r\nno way";
        write(&mut origin, refusal).await;
        let response = head(&mut client).await;
        assert!(
            response.starts_with("HTTP/1.1 403 Forbidden\r\n"),
            "{response}"
        );
        assert!(response.contains("x-why: origin\r\n"), "{response}");
        assert!(
            response.contains("via: 1.0 www.site.test\r\n"),
            "{response}"
        );
        assert!(!response.contains("alt-svc"), "{response}");
        let mut body = [0; 6];
        client
            .read_exact(&mut body)
            .await
            .expect("the body arrives");
        assert_eq!(&body, b"no way");
        assert_eq!(
            between.read_available(&mut origin).await,
            "",
            "nothing else was for it"
        );
    }
    assert_eq!(counts(&between, CounterFamily::Origins), [("4xx", 2)]);
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

/// Its connection to the origin is in no pool: read slowly, it was one of as many as a client liked to have.
#[tokio::test]
async fn rejection_holds_permit_until_body_ends() {
    let mut between = Between::start("[websocket]\nper_client = 1\n");
    let (mut client, mut origin, _serving) = requested(&mut between).await;
    let half = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhal";
    write(&mut origin, half).await;
    head(&mut client).await;
    assert_eq!(between.proxy.client_limits.open_websockets(), 1);
    let (mut next, _serving_next) = between.client();
    write(&mut next, HANDSHAKE).await;
    let response = head(&mut next).await;
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    write(&mut origin, "ves").await;
    let mut body = [0; 6];
    client
        .read_exact(&mut body)
        .await
        .expect("the body arrives");
    assert_eq!(&body, b"halves");
    between.clock.advance(Duration::ZERO).await;
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

#[tokio::test]
async fn early_client_data_waits_for_101() {
    for agrees in [true, false] {
        let mut between = Between::start("");
        let (mut client, _serving) = between.client();
        write(&mut client, &[HANDSHAKE, HIDDEN].concat()).await;
        let mut origin = between.next_connection().await;
        let request_head = head(&mut origin).await;
        assert!(
            request_head.starts_with("GET /chat HTTP/1.1\r\n"),
            "{request_head}"
        );
        between.clock.advance(Duration::from_secs(20)).await;
        let early = origin.read_u8().now_or_never();
        assert!(early.is_none(), "nothing follows the handshake: {early:?}");
        if agrees {
            write(&mut origin, AGREED).await;
            assert!(head(&mut client).await.starts_with("HTTP/1.1 101 "));
            // They are bytes of the other protocol now, whatever they look like.
            assert_eq!(head(&mut origin).await, HIDDEN);
            continue;
        }
        write(
            &mut origin,
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        )
        .await;
        assert!(head(&mut client).await.starts_with("HTTP/1.1 404 "));
        assert_eq!(
            between.read_available(&mut origin).await,
            "",
            "the permit belongs to one client"
        );
        // A request like any other: checked, with forwarding fields, on another connection.
        let mut other = between.next_connection().await;
        let request_head = head(&mut other).await;
        assert!(
            request_head.starts_with("GET /admin HTTP/1.1\r\n"),
            "{request_head}"
        );
        assert!(
            request_head.contains("x-forwarded-for: 192.0.2.1\r\n"),
            "{request_head}"
        );
    }
}

#[tokio::test]
async fn other_protocol_is_not_a_websocket() {
    let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
    let (connection, upgrade) = ("Connection: Upgrade\r\n", "Upgrade: websocket\r\n");
    for (version, fields) in [
        ("1.1", &[connection, "Upgrade: h2c\r\n", accept][..]),
        ("1.1", &[connection, "Upgrade: websocket, h2c\r\n", accept]),
        ("1.1", &[upgrade, accept]),
        ("1.1", &[connection, upgrade]),
        (
            "1.1",
            &[connection, upgrade, "Sec-WebSocket-Accept: AAAA\r\n"],
        ),
        ("1.1", &[]),
        ("1.0", &[connection, upgrade, accept]),
    ] {
        let fields = fields.concat();
        let mut between = Between::start("");
        let (mut client, mut origin, _serving) = requested(&mut between).await;
        write(
            &mut origin,
            &format!("HTTP/{version} 101 Switching Protocols\r\n{fields}\r\nbytes"),
        )
        .await;
        let response = head(&mut client).await;
        assert!(
            response.starts_with("HTTP/1.1 502 "),
            "{fields}: {response}"
        );
        let proxy_status = "proxy-status: spdy; error=http_upgrade_failed\r\n";
        assert!(response.contains(proxy_status), "{fields}: {response}");
        assert_eq!(
            counts(&between, CounterFamily::Origins),
            [("invalid-response", 1)],
            "{fields}"
        );
    }
}

#[tokio::test]
async fn unreachable_or_silent_origin_gives_an_error() {
    let mut between = Between::start("");
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let _silent = between.next_connection().await;
    let (response, _) = between.wait(head(&mut client)).await;
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    assert!(
        response.contains("error=http_response_timeout"),
        "{response}"
    );

    between.origin.close();
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let response = head(&mut client).await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
    assert!(response.contains("error=connection_refused"), "{response}");
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

/// Regression: one client could make all pages of a site unavailable by requesting WebSockets of an origin that has none.
#[tokio::test]
async fn failed_handshake_does_not_back_off_origin() {
    let mut between = Between::start("[upstream]\nfailures = 1\nrest_s = 5\nretries = 0\n");
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let _silent = between.next_connection().await;
    let (response, _) = between.wait(head(&mut client)).await;
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    let (mut client, _serving) = between.client();
    write(&mut client, HIDDEN).await;
    let mut origin = between.next_connection().await;
    assert!(head(&mut origin).await.starts_with("GET /admin "));
    // The origin does not answer that either, and is backed off. The first page requested after that is sent as a probe.
    let (response, _) = between.wait(head(&mut client)).await;
    assert!(response.starts_with("HTTP/1.1 504 "), "{response}");
    let (mut client, _serving) = between.client();
    write(&mut client, HANDSHAKE).await;
    let response = head(&mut client).await;
    assert!(
        response.contains("error=destination_unavailable"),
        "{response}"
    );
    between.clock.advance(Duration::from_secs(6)).await;
    let (mut other, _serving_other) = between.client();
    write(&mut other, HANDSHAKE).await;
    let _silent = between.next_connection().await;
    let (mut last, _serving_last) = between.client();
    write(&mut last, HIDDEN).await;
    let mut origin = between.next_connection().await;
    assert!(head(&mut origin).await.starts_with("GET /admin "));
}

#[tokio::test]
async fn client_leaving_before_101_counts_as_error() {
    let mut between = Between::start("");
    let (client, mut origin, serving) = requested(&mut between).await;
    drop(client);
    write(&mut origin, AGREED).await;
    serving.await.expect("no panic");
    assert_eq!(
        counts(&between, CounterFamily::Responses),
        [("websocket", 1)]
    );
    assert_eq!(counts(&between, CounterFamily::WebSockets), [("error", 1)]);
    assert_eq!(between.proxy.client_limits.open_websockets(), 0);
}

#[tokio::test]
async fn other_upgrades_are_not_forwarded() {
    let proxied_host =
        "---[site.rewrite]\n[[site.rewrite.hosts]]\nhost = 'cdn.test'\nkinds = ['image']\n";
    let no_version = HANDSHAKE.replace("Sec-WebSocket-Version: 13\r\n", "");
    for (more, handshake, status, reason) in [
        (
            "---websocket = false\n",
            HANDSHAKE.to_owned(),
            501,
            "websocket",
        ),
        (
            proxied_host,
            HANDSHAKE.replace("/chat", "/.spdy/1/-/s/cdn.test/a.png"),
            404,
            "upgrade",
        ),
        ("", HANDSHAKE.replace("GET", "POST"), 400, "handshake"),
        (
            "",
            HANDSHAKE.replace("\r\n\r\n", "\r\nContent-Length: 3\r\n\r\nabc"),
            400,
            "handshake",
        ),
        ("", no_version, 426, "handshake"),
    ] {
        let mut between = Between::start(more);
        let (mut client, _serving) = between.client();
        write(&mut client, &handshake).await;
        let response = head(&mut client).await;
        assert!(
            response.starts_with(&format!("HTTP/1.1 {status} ")),
            "{handshake}{response}"
        );
        assert_eq!(
            counts(&between, CounterFamily::RefusedRequests),
            [(reason, 1)],
            "{handshake}"
        );
        assert!(
            between.origin.try_recv().is_err(),
            "{handshake}: no request is sent"
        );
        let names_version = response.contains("sec-websocket-version: 13\r\n");
        assert_eq!(names_version, status == 426, "{response}");
    }
}

#[tokio::test]
async fn ignored_upgrade_is_a_plain_request() {
    for (handshake, version) in [
        (HANDSHAKE.replace("HTTP/1.1", "HTTP/1.0"), "HTTP/1.0"),
        (HANDSHAKE.replace("Connection: Upgrade\r\n", ""), "HTTP/1.1"),
        (
            HANDSHAKE.replace("Connection: Upgrade", "Connection: close"),
            "HTTP/1.1",
        ),
    ] {
        let mut between = Between::start("");
        let (mut client, _serving) = between.client();
        write(&mut client, &handshake).await;
        let mut origin = between.next_connection().await;
        let request_head = head(&mut origin).await.to_ascii_lowercase();
        assert!(!request_head.contains("upgrade"), "{request_head}");
        let page = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        write(&mut origin, page).await;
        let response = head(&mut client).await;
        let status_line = format!("{version} 200 OK\r\n");
        assert!(response.starts_with(&status_line), "{response}");
    }
}

#[tokio::test]
async fn other_protocol_is_never_requested() {
    let mut between = Between::start("");
    let (mut client, _serving) = between.client();
    let handshake = HANDSHAKE.replace(
        "Upgrade: websocket",
        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk",
    );
    write(&mut client, &handshake).await;
    let mut origin = between.next_connection().await;
    let request_head = head(&mut origin).await.to_ascii_lowercase();
    assert!(
        !request_head.contains("upgrade") && !request_head.contains("http2-settings"),
        "{request_head}"
    );
    write(&mut origin, AGREED).await;
    let response = head(&mut client).await;
    assert!(response.starts_with("HTTP/1.1 502 "), "{response}");
}
