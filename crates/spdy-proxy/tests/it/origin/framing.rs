//! How an origin marks the end and the date of its answers, and how clients get them. In virtual time.

use tokio::io::DuplexStream;

use crate::support::wire::{Between, head, write};

/// The head that a client gets where the origin answers so, and what the origin's connection is.
async fn response_head(
    between: &mut Between,
    target: &str,
    origin_response: &str,
) -> (String, DuplexStream) {
    let (mut client, _) = between.client();
    let request = format!("GET {target} HTTP/1.1\r\nHost: www.site.test\r\n\r\n");
    write(&mut client, &request).await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    write(&mut origin, origin_response).await;
    let (client_head, _) = between.wait(head(&mut client)).await;
    (client_head, client)
}

fn values<'a>(head: &'a str, name: &str) -> Vec<&'a str> {
    let lines = head.lines().filter_map(|line| line.split_once(": "));
    let named = lines.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    named.map(|(_, value)| value).collect()
}

/// Over HTTP/2 a client took each of these for a fault of ours.
#[tokio::test]
async fn duplicate_content_length_is_normalized() {
    let mut between = Between::start("");
    for (nth, length) in ["4, 4", "4\r\nContent-Length: 4", "4"].iter().enumerate() {
        let target = format!("/{nth}");
        let fields = format!("Cache-Control: max-age=60\r\nContent-Length: {length}");
        let origin_response =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}\r\n\r\nfour");
        let (head, _) = response_head(&mut between, &target, &origin_response).await;
        assert_eq!(values(&head, "content-length"), ["4"], "{length}");
    }
    let origin_response =
        "HTTP/1.1 204 No Content\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
    let (head, _) = response_head(&mut between, "/none", origin_response).await;
    assert_eq!(values(&head, "content-length"), [""; 0], "{head}");
}

/// Regression: such an answer was stored with its coding, and served as if it had none.
#[tokio::test]
async fn unsupported_transfer_coding_is_rejected() {
    let mut between = Between::start("");
    let codings = [
        "gzip, chunked",
        "GZIP",
        "deflate",
        "gzip\r\nTransfer-Encoding: chunked",
        "chunked, chunked",
    ];
    for (nth, coding) in codings.iter().enumerate() {
        let fields = format!("Cache-Control: max-age=60\r\nTransfer-Encoding: {coding}");
        let origin_response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n4\r\nfour\r\n0\r\n\r\n");
        let (head, _) = response_head(&mut between, &format!("/{nth}"), &origin_response).await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{coding}: {head}");
    }
    let fields = "Cache-Control: max-age=60\r\nTransfer-Encoding: Chunked";
    let origin_response = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n4\r\nfour\r\n0\r\n\r\n");
    let (head, _) = response_head(&mut between, "/good", &origin_response).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

#[tokio::test]
async fn missing_date_is_set_to_receive_time() {
    let mut between = Between::start("");
    let good = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfour";
    let (head, _) = response_head(&mut between, "/a", good).await;
    let date = values(&head, "date");
    assert!(
        matches!(date[..], [date] if date.ends_with(" GMT")),
        "{head}"
    );
    let dated = good.replace(
        "Connection",
        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection",
    );
    let (head, _) = response_head(&mut between, "/b", &dated).await;
    assert_eq!(values(&head, "date"), ["Sun, 06 Nov 1994 08:49:37 GMT"]);
}

/// Regression: generated responses had no date, and requests with Max-Forwards 0 went to the origin.
#[tokio::test]
async fn generated_responses_have_date_and_allow() {
    let mut between =
        Between::start("---[[site.rewrite.hosts]]\nhost = 'cdn.test'\nscheme = 'http'\n");
    let fetch_head = async |between: &Between, request: &str| {
        let (mut client, _) = between.client();
        let fields = "Host: www.site.test";
        write(
            &mut client,
            &request.replacen("\r\n", &format!("\r\n{fields}\r\n"), 1),
        )
        .await;
        client
    };
    let options = "OPTIONS /a HTTP/1.1\r\nMax-Forwards: 0\r\n\r\n";
    let delete = "DELETE /.spdy/1/-/p/cdn.test/a.png HTTP/1.1\r\n\r\n";
    for (request, status) in [(options, "204"), (delete, "405")] {
        let mut client = fetch_head(&between, request).await;
        let (head, _) = between.wait(head(&mut client)).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert_eq!(values(&head, "date").len(), 1, "{head}");
        assert!(values(&head, "allow")[0].starts_with("GET, HEAD"), "{head}");
    }
    assert!(between.origin.try_recv().is_err(), "no request is sent");
    let _client = fetch_head(&between, "OPTIONS /a HTTP/1.1\r\nMax-Forwards: 5\r\n\r\n").await;
    let mut origin = between.next_connection().await;
    let request_head = head(&mut origin).await;
    assert_eq!(
        values(&request_head, "max-forwards"),
        ["4"],
        "{request_head}"
    );
}

#[tokio::test]
async fn http_1_0_without_host_is_misdirected() {
    let between = Between::start("");
    for host in ["", "Host: other.test\r\n"] {
        let (mut client, _) = between.client();
        write(&mut client, &format!("GET / HTTP/1.0\r\n{host}\r\n")).await;
        let (response, _) = between.wait(head(&mut client)).await;
        assert!(response.contains(" 421 "), "{host}: {response}");
    }
}

/// Some answer 411 to requests that state no length.
#[tokio::test]
async fn content_length_zero_is_sent_for_post_put_patch() {
    let mut between = Between::start("");
    for (method, expected) in [
        ("POST", &["0"][..]),
        ("PUT", &["0"]),
        ("PATCH", &["0"]),
        ("DELETE", &[]),
        ("GET", &[]),
    ] {
        for client_length in ["Content-Length: 0\r\n", ""] {
            let (mut client, _) = between.client();
            let request = format!(
                "{method} /{method} HTTP/1.1\r\nHost: www.site.test\r\n{client_length}\r\n"
            );
            write(&mut client, &request).await;
            let mut origin = between.next_connection().await;
            let request_head = head(&mut origin).await;
            assert_eq!(
                values(&request_head, "content-length"),
                expected,
                "{client_length:?}: {request_head}"
            );
            write(&mut origin, "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\r\n").await;
            let (response, _) = between.wait(head(&mut client)).await;
            assert!(response.starts_with("HTTP/1.1 404 "), "{response}");
        }
    }
}

/// A client that believed it waited for another answer on a connection that had ended.
#[tokio::test]
async fn http_1_0_connection_closes_after_unsized_body() {
    let mut between = Between::start("");
    for (origin_response, is_kept_alive) in [
        ("Content-Length: 4\r\n\r\nfour", true),
        (
            "Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
            false,
        ),
    ] {
        let (mut client, _) = between.client();
        let request = "GET /a HTTP/1.0\r\nHost: www.site.test\r\nConnection: keep-alive\r\n\r\n";
        write(&mut client, request).await;
        let mut origin = between.next_connection().await;
        head(&mut origin).await;
        let origin_response = format!(
            "HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-store\r\n{origin_response}"
        );
        write(&mut origin, &origin_response).await;
        let (response, _) = between.wait(head(&mut client)).await;
        let has_keep_alive = values(&response, "connection").contains(&"keep-alive");
        assert_eq!(has_keep_alive, is_kept_alive, "{response}");
    }
}
