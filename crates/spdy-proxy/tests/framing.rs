//! How an origin says where its answers end and when they were made, and what clients are told of that. In time that stands.

#[path = "support/wire.rs"]
mod wire;

use tokio::io::DuplexStream;
use wire::{Between, head, write};

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
async fn a_length_that_is_said_more_than_once_is_said_once() {
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

/// Such an answer was kept with its coding, and served as if it had none.
#[tokio::test]
async fn what_comes_under_another_transfer_coding_than_chunked_is_not_passed_on() {
    let mut between = Between::start("");
    let codings = [
        "gzip, chunked",
        "foo",
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
async fn an_answer_without_a_date_is_of_when_it_came() {
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
