//! How an origin marks the end and the date of its answers, and how clients get them. In virtual time.

use tokio::io::DuplexStream;

use crate::support::wire::{Between, head, write};

/// The head that a client gets where the origin answers so, and what the origin's connection is.
async fn told(between: &mut Between, target: &str, answer: &str) -> (String, DuplexStream) {
    let (mut client, _) = between.client();
    let request = format!("GET {target} HTTP/1.1\r\nHost: www.site.test\r\n\r\n");
    write(&mut client, &request).await;
    let mut origin = between.asked().await;
    head(&mut origin).await;
    write(&mut origin, answer).await;
    let (told, _) = between.wait(head(&mut client)).await;
    (told, client)
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
        let answer = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{fields}\r\n\r\nfour");
        let (head, _) = told(&mut between, &target, &answer).await;
        assert_eq!(values(&head, "content-length"), ["4"], "{length}");
    }
    let answer = "HTTP/1.1 204 No Content\r\nConnection: close\r\nContent-Length: 4\r\n\r\n";
    let (head, _) = told(&mut between, "/none", answer).await;
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
        let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n4\r\nfour\r\n0\r\n\r\n");
        let (head, _) = told(&mut between, &format!("/{nth}"), &answer).await;
        assert!(head.starts_with("HTTP/1.1 502 "), "{coding}: {head}");
    }
    let fields = "Cache-Control: max-age=60\r\nTransfer-Encoding: Chunked";
    let answer = format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n4\r\nfour\r\n0\r\n\r\n");
    let (head, _) = told(&mut between, "/good", &answer).await;
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
}

#[tokio::test]
async fn missing_date_is_set_to_receive_time() {
    let mut between = Between::start("");
    let good = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nfour";
    let (head, _) = told(&mut between, "/a", good).await;
    let date = values(&head, "date");
    assert!(
        matches!(date[..], [date] if date.ends_with(" GMT")),
        "{head}"
    );
    let dated = good.replace(
        "Connection",
        "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nConnection",
    );
    let (head, _) = told(&mut between, "/b", &dated).await;
    assert_eq!(values(&head, "date"), ["Sun, 06 Nov 1994 08:49:37 GMT"]);
}

/// Regression: generated responses had no date, and requests with Max-Forwards 0 went to the origin.
#[tokio::test]
async fn generated_responses_have_date_and_allow() {
    let mut between =
        Between::start("---[[site.rewrite.hosts]]\nhost = 'cdn.test'\nscheme = 'http'\n");
    let ask = async |between: &Between, request: &str| {
        let (mut client, _) = between.client();
        let fields = "Host: www.site.test";
        write(
            &mut client,
            &request.replacen("\r\n", &format!("\r\n{fields}\r\n"), 1),
        )
        .await;
        client
    };
    let none_left = "OPTIONS /a HTTP/1.1\r\nMax-Forwards: 0\r\n\r\n";
    let moved = "DELETE /.spdy/1/-/p/cdn.test/a.png HTTP/1.1\r\n\r\n";
    for (request, status) in [(none_left, "204"), (moved, "405")] {
        let mut client = ask(&between, request).await;
        let (head, _) = between.wait(head(&mut client)).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{head}");
        assert_eq!(values(&head, "date").len(), 1, "{head}");
        assert!(values(&head, "allow")[0].starts_with("GET, HEAD"), "{head}");
    }
    assert!(between.origin.try_recv().is_err(), "no request is sent");
    let _client = ask(&between, "OPTIONS /a HTTP/1.1\r\nMax-Forwards: 5\r\n\r\n").await;
    let mut origin = between.asked().await;
    let asked = head(&mut origin).await;
    assert_eq!(values(&asked, "max-forwards"), ["4"], "{asked}");
}

#[tokio::test]
async fn http_1_0_without_host_is_misdirected() {
    let between = Between::start("");
    for host in ["", "Host: other.test\r\n"] {
        let (mut client, _) = between.client();
        write(&mut client, &format!("GET / HTTP/1.0\r\n{host}\r\n")).await;
        let (told, _) = between.wait(head(&mut client)).await;
        assert!(told.contains(" 421 "), "{host}: {told}");
    }
}

/// Some answer 411 to requests that state no length.
#[tokio::test]
async fn content_length_zero_is_sent_for_post_put_patch() {
    let mut between = Between::start("");
    for (method, want) in [
        ("POST", &["0"][..]),
        ("PUT", &["0"]),
        ("PATCH", &["0"]),
        ("DELETE", &[]),
        ("GET", &[]),
    ] {
        for said in ["Content-Length: 0\r\n", ""] {
            let (mut client, _) = between.client();
            let request =
                format!("{method} /{method} HTTP/1.1\r\nHost: www.site.test\r\n{said}\r\n");
            write(&mut client, &request).await;
            let mut origin = between.asked().await;
            let asked = head(&mut origin).await;
            assert_eq!(values(&asked, "content-length"), want, "{said:?}: {asked}");
            write(&mut origin, "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\nCache-Control: no-store\r\n\r\n").await;
            let (told, _) = between.wait(head(&mut client)).await;
            assert!(told.starts_with("HTTP/1.1 404 "), "{told}");
        }
    }
}

/// A client that believed it waited for another answer on a connection that had ended.
#[tokio::test]
async fn http_1_0_connection_closes_after_unsized_body() {
    let mut between = Between::start("");
    for (answer, is_kept) in [
        ("Content-Length: 4\r\n\r\nfour", true),
        (
            "Transfer-Encoding: chunked\r\n\r\n4\r\nfour\r\n0\r\n\r\n",
            false,
        ),
    ] {
        let (mut client, _) = between.client();
        let request = "GET /a HTTP/1.0\r\nHost: www.site.test\r\nConnection: keep-alive\r\n\r\n";
        write(&mut client, request).await;
        let mut origin = between.asked().await;
        head(&mut origin).await;
        let answer =
            format!("HTTP/1.1 200 OK\r\nConnection: close\r\nCache-Control: no-store\r\n{answer}");
        write(&mut origin, &answer).await;
        let (told, _) = between.wait(head(&mut client)).await;
        let says = values(&told, "connection").contains(&"keep-alive");
        assert_eq!(says, is_kept, "{told}");
    }
}
