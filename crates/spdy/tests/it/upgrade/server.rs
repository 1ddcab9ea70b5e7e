//! The server of HTTP/1.1 `Upgrade: SPDY/3.1`: which requests it accepts, and how it refuses the others.

use http::StatusCode;
use spdy::upgrade::{self, Limits, Refusal, UpgradeError, Upgraded};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::upgrade::{EXEC, request};
use crate::support::{pipe, runtime};

/// A server's result and response for `request`, where the server offers `protocols`.
async fn response_to(
    request: &[u8],
    protocols: &[&str],
) -> (Result<Upgraded<DuplexStream>, UpgradeError>, String) {
    let (mut near, far) = pipe();
    near.write_all(request).await.expect("room");
    let serve = async {
        let offer = upgrade::read_request(far, Limits::default(), &runtime()).await?;
        offer.accept(protocols).await
    };
    let result = serve.await;
    let mut response = Vec::new();
    if result.is_ok() {
        while !response.ends_with(b"\r\n\r\n") {
            response.push(near.read_u8().await.expect("a response"));
        }
    } else {
        near.read_to_end(&mut response).await.expect("a response");
    }
    (result, String::from_utf8(response).expect("ascii"))
}

#[tokio::test]
async fn the_first_supported_offer_is_chosen_in_any_case() {
    let head = request(&[
        "connection: keep-alive, upgrade",
        "UPGRADE: h2c, spdy/3.1",
        "X-Stream-Protocol-Version: v5.channel.k8s.io",
        "X-Stream-Protocol-Version: v3.channel.k8s.io, v4.channel.k8s.io",
        "Content-Length: 0",
    ]);
    let with_frames = [&head[..], b"\x80\x03"].concat();
    let (result, response) = response_to(&with_frames, EXEC).await;
    let upgraded = result.expect("a switch");
    assert_eq!(
        upgraded.protocol(),
        Some("v3.channel.k8s.io"),
        "the client's order decides"
    );
    assert_eq!(
        response,
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\
         x-stream-protocol-version: v3.channel.k8s.io\r\n\r\n"
    );
    assert_eq!(
        &upgraded.into_io().into_parts().0[..],
        b"\x80\x03",
        "the first frame arrived with the request"
    );
}

#[tokio::test]
async fn a_server_refuses_with_400_and_403_as_apimachinery_does() {
    let up = ["Connection: Upgrade", "Upgrade: SPDY/3.1"];
    let offer = "X-Stream-Protocol-Version: v4.channel.k8s.io";
    let cases: &[(&[&str], &str)] = &[
        (&[up[0], offer], "400"),
        (&[up[1], offer], "400"),
        (&["Connection: close", up[1], offer], "400"),
        (&[up[0], "Upgrade: websocket", offer], "400"),
        (&up, "400"),
        (&[up[0], up[1], "X-Stream-Protocol-Version: ,"], "400"),
        (&[up[0], up[1], offer, "Content-Length: 1"], "400"),
        (&[up[0], up[1], offer, "Transfer-Encoding: chunked"], "400"),
        (&[up[0], up[1], "X-Stream-Protocol-Version: v9"], "403"),
    ];
    for (lines, code) in cases {
        let (result, response) = response_to(&request(lines), EXEC).await;
        assert!(
            matches!(result, Err(UpgradeError::Offer(_))),
            "{lines:?}: {result:?}"
        );
        assert!(
            response.starts_with(&format!("HTTP/1.1 {code} ")),
            "{lines:?}: {response}"
        );
        let accepted = EXEC.iter().all(|name| {
            response.contains(&format!("x-accepted-stream-protocol-versions: {name}\r\n"))
        });
        assert_eq!(accepted, *code == "403", "{response}");
    }
    let (_, response) = response_to(b"PUT / HTTP/1.1\r\n\r\n", EXEC).await;
    assert!(response.starts_with("HTTP/1.1 405 "), "{response}");
    assert!(response.contains("\r\nallow: GET, POST\r\n"), "{response}");
    let (_, response) = response_to(
        b"GET / HTTP/1.0\r\nConnection: upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n",
        &[],
    )
    .await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    let (_, response) = response_to(b"\x80\x03\x00\x01\r\n\r\n", EXEC).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    let (result, _) = response_to(&request(&up), &[]).await;
    assert_eq!(
        result
            .expect("no sub-protocol is offered or required")
            .protocol(),
        None
    );
}

#[tokio::test]
async fn a_request_head_over_a_limit_gets_431() {
    let limits = Limits::default();
    let over_bytes = request(&[&format!("a: {}", "y".repeat(limits.head_bytes))]);
    let over_lines = request(&vec!["a: b"; limits.header_lines]);
    for head in [over_bytes, over_lines] {
        let (result, response) = response_to(&head, EXEC).await;
        assert!(result.is_err());
        assert!(response.starts_with("HTTP/1.1 431 "), "{response}");
    }
    let fits = request(&vec!["a: b"; limits.header_lines - 1]);
    let (_, response) = response_to(&fits, EXEC).await;
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
}

#[tokio::test]
async fn the_callers_refusal_is_written_as_given() {
    let (mut near, far) = pipe();
    near.write_all(&request(&[])).await.expect("room");
    let offer = upgrade::read_request(far, Limits::default(), &runtime())
        .await
        .expect("a request");
    assert_eq!(offer.request().uri().path(), "/exec/t");
    offer
        .refuse(&Refusal::new(StatusCode::NOT_FOUND, "no such token"))
        .await
        .expect("written");
    let mut response = String::new();
    near.read_to_string(&mut response)
        .await
        .expect("a response");
    assert!(
        response.starts_with("HTTP/1.1 404 Not Found\r\n"),
        "{response}"
    );
    assert!(response.ends_with("\r\n\r\nno such token\n"), "{response}");
}
