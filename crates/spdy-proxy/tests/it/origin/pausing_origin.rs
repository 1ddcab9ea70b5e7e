//! An origin that sends the beginning of an answer and then pauses: the client has that beginning by then. In virtual time.

use std::time::Duration;

use spdy_proxy::body::content_coding::Coding;
use spdy_proxy::body::decoder::Decoder;
use spdy_proxy::body::encoder::Encoder;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use crate::support::wire::{Between, head, write};

const RULES: &str =
    "---[[site.rewrite.hosts]]\nhost = 'cdn.test'\nkinds = ['image', 'style', 'script']\n";
/// How long the origin pauses.
const PAUSE: Duration = Duration::from_millis(900);

/// A client that has requested a page with these header fields, and the origin's end of the connection.
async fn opened(between: &mut Between, fields: &str) -> (DuplexStream, DuplexStream) {
    let (mut client, _) = between.client();
    let request = format!("GET / HTTP/1.1\r\nHost: www.site.test\r\n{fields}\r\n");
    write(&mut client, &request).await;
    let mut origin = between.next_connection().await;
    head(&mut origin).await;
    (client, origin)
}

/// The part of a chunked body that has arrived by the end of `pause`.
async fn received(between: &Between, client: &mut DuplexStream, pause: Duration) -> Vec<u8> {
    between.clock.advance(pause).await;
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        tokio::select! {
            biased;
            read = client.read(&mut piece) => match read.expect("the connection is open") {
                0 => break,
                read => bytes.extend_from_slice(&piece[..read]),
            },
            () = between.clock.advance(Duration::ZERO) => break,
        }
    }
    bytes
}

/// The head in what came, and the data of its chunks.
fn split_response(response: &[u8]) -> (String, Vec<u8>) {
    let end = response.windows(4).position(|four| four == b"\r\n\r\n");
    let (head, mut rest) = response.split_at(end.expect("a response head") + 4);
    let mut data = Vec::new();
    while let Some(line) = rest.windows(2).position(|two| two == b"\r\n") {
        let size = std::str::from_utf8(&rest[..line]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let start = line + 2;
        data.extend_from_slice(&rest[start..start + size]);
        rest = &rest[start + size + 2..];
    }
    (String::from_utf8_lossy(head).to_ascii_lowercase(), data)
}

/// One chunk of a body.
async fn chunk(origin: &mut DuplexStream, data: &[u8]) {
    let size = format!("{:x}\r\n", data.len());
    let piece = [size.as_bytes(), data, b"\r\n"].concat();
    origin.write_all(&piece).await.expect("the peer reads");
}

fn text(data: &[u8]) -> &str {
    std::str::from_utf8(data).expect("the value is text")
}

const BEGIN: &str =
    "<!doctype html><title>A page</title>\n<img src=https://cdn.test/a.png>\n<p>Its beginning";
const REWRITTEN: &str = "<!doctype html><title>A page</title>\n<img src=\"/.spdy/1/-/s/cdn.test/a.png\">\n<p>Its beginning";

#[tokio::test]
async fn page_start_of_unknown_charset_is_sent_on_pause() {
    for fields in [
        "",
        "Cache-Control: max-age=60\r\n",
        "Cache-Control: private\r\nSet-Cookie: a=b\r\n",
    ] {
        let mut between = Between::start(RULES);
        let (mut client, mut origin) = opened(&mut between, "Cookie: c=d\r\n").await;
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n{fields}\r\n"
        );
        write(&mut origin, &head).await;
        chunk(&mut origin, BEGIN.as_bytes()).await;
        // A tag that is cut waits for its end.
        chunk(&mut origin, b"<img src=https://cdn.te").await;
        let (head, data) = split_response(&received(&between, &mut client, PAUSE).await);
        assert!(head.starts_with("http/1.1 200"), "{head}");
        assert_eq!(text(&data), REWRITTEN, "{fields}");
        chunk(&mut origin, b"st/b.png>").await;
        chunk(&mut origin, b"").await;
        let rest = between.read_available(&mut client).await;
        assert!(
            rest.contains("<img src=\"/.spdy/1/-/s/cdn.test/b.png\">"),
            "{rest}"
        );
        assert!(rest.ends_with("0\r\n\r\n"), "{rest}");
    }
}

#[tokio::test]
async fn page_start_is_sent_on_pause_for_all_codings() {
    for coding in [Coding::Gzip, Coding::Zstd, Coding::Brotli, Coding::Identity] {
        for from_origin in [true, false] {
            let mut between = Between::start(RULES);
            let accepted = format!("Accept-Encoding: {}\r\n", coding.name());
            let (mut client, mut origin) = opened(&mut between, &accepted).await;
            let kind = "Content-Type: text/html\r\nCache-Control: max-age=60";
            let coded = match from_origin && coding != Coding::Identity {
                true => format!("\r\nContent-Encoding: {}", coding.name()),
                false => String::new(),
            };
            let head =
                format!("HTTP/1.1 200 OK\r\n{kind}{coded}\r\nTransfer-Encoding: chunked\r\n\r\n");
            write(&mut origin, &head).await;
            let data = match from_origin {
                true => {
                    let mut encoder = Encoder::new(coding);
                    encoder.write(BEGIN.as_bytes())
                }
                false => BEGIN.as_bytes().to_vec(),
            };
            chunk(&mut origin, &data).await;
            let (head, data) = split_response(&received(&between, &mut client, PAUSE).await);
            let decoded = match head.contains("content-encoding") {
                true => {
                    let mut decoder = Decoder::new(coding, 1 << 20);
                    decoder
                        .write(&data)
                        .expect("the body is valid in its coding")
                }
                false => data,
            };
            assert_eq!(text(&decoded), REWRITTEN, "{coding:?}, {from_origin}");
        }
    }
}

#[tokio::test]
async fn page_with_known_charset_is_sent_at_once() {
    let mut between = Between::start(RULES);
    let (mut client, mut origin) = opened(&mut between, "").await;
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    write(&mut origin, head).await;
    chunk(
        &mut origin,
        "<meta charset=utf-8><img src=https://cdn.test/\u{e4}.png>".as_bytes(),
    )
    .await;
    let expected = "<meta charset=utf-8><img src=\"/.spdy/1/-/s/cdn.test/%C3%A4.png\">";
    let (_, data) = split_response(&received(&between, &mut client, Duration::ZERO).await);
    assert_eq!(text(&data), expected);
}

#[tokio::test]
async fn unrewritten_body_streams() {
    for (kind, begin) in [
        ("text/html; charset=utf-8", "<p>"),
        ("application/json", "{\"a\":"),
        ("text/event-stream", "data: 1\n\n"),
        ("image/png", "x"),
    ] {
        for fields in [
            "",
            "Cache-Control: max-age=60\r\n",
            "Cache-Control: private\r\n",
        ] {
            let mut between = Between::start(RULES);
            let (mut client, mut origin) = opened(&mut between, "").await;
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nTransfer-Encoding: chunked\r\n{fields}\r\n"
            );
            write(&mut origin, &head).await;
            chunk(&mut origin, begin.as_bytes()).await;
            let (_, data) = split_response(&received(&between, &mut client, PAUSE).await);
            assert_eq!(text(&data), begin, "{kind} {fields}");
        }
    }
}
