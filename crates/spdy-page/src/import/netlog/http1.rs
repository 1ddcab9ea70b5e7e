//! Extracts HTTP/1.1 messages from the bytes of a connection (RFC 9112 §6).

use bytes::Bytes;

use crate::head::{self, Head};

/// Maximum length of a line with a chunk's size and extensions.
const CHUNK_LINE: usize = 16 << 10;

/// One message: its literal head, and its body with and without framing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Message {
    pub(super) head: Bytes,
    /// As sent: with the chunks, their extensions and trailer fields.
    pub(super) framed_body: Bytes,
    /// Without framing.
    pub(super) body: Bytes,
    pub(super) has_trailers: bool,
    /// The connection ended before the message did.
    pub(super) is_cut: bool,
}

impl Message {
    /// The message of `head`, whose body of this length begins `rest`; also returns the length of the body in `rest`.
    fn of(head: Bytes, length: Length, rest: &Bytes) -> (Self, usize) {
        let mut message = Self {
            head,
            framed_body: Bytes::new(),
            body: Bytes::new(),
            has_trailers: false,
            is_cut: false,
        };
        let len = match length {
            Length::Exact(announced) => match usize::try_from(announced) {
                Ok(announced) if announced <= rest.len() => announced,
                _ => {
                    message.is_cut = true;
                    rest.len()
                }
            },
            Length::ToTheEnd => rest.len(),
            Length::Chunks => {
                let chunks = Chunks::read(rest);
                message.is_cut = chunks.len.is_none();
                message.has_trailers = chunks.has_trailers;
                message.body = chunks.data.into();
                chunks.len.unwrap_or(rest.len())
            }
        };
        message.framed_body = rest.slice(..len);
        if !matches!(length, Length::Chunks) {
            message.body = message.framed_body.clone();
        }
        (message, len)
    }
}

/// How the end of a body is determined (RFC 9112 §6.3).
#[derive(Clone, Copy, Debug)]
enum Length {
    Exact(u64),
    Chunks,
    ToTheEnd,
}

/// A chunked body (RFC 9112 §7.1), as far as it was received.
#[derive(Debug, Default)]
struct Chunks {
    data: Vec<u8>,
    has_trailers: bool,
    /// Length including all framing; `None` if the end is missing or the framing is invalid.
    len: Option<usize>,
}

impl Chunks {
    fn read(bytes: &[u8]) -> Self {
        let mut chunks = Self::default();
        let mut at = 0;
        while let Some((size, line)) = chunk_head(&bytes[at..]) {
            at += line;
            if size == 0 {
                // Trailer fields end with an empty line, like a head; without fields the empty line is alone.
                chunks.len = head::head_len(&bytes[at..]).map(|len| at + len);
                chunks.has_trailers = !matches!(&bytes[at..], [] | [b'\r' | b'\n', ..]);
                break;
            }
            let there = &bytes[at..];
            chunks
                .data
                .extend_from_slice(&there[..size.min(there.len())]);
            let end = match there.get(size..) {
                Some([b'\r', b'\n', ..]) => size + 2,
                Some([b'\n', ..]) => size + 1,
                _ => break,
            };
            at += end;
        }
        chunks
    }
}

/// The size on the first line of a chunk, and the length of that line.
fn chunk_head(bytes: &[u8]) -> Option<(usize, usize)> {
    let end = bytes
        .iter()
        .take(CHUNK_LINE)
        .position(|&byte| byte == b'\n')?;
    let digits = bytes[..end]
        .split(|&byte| byte == b';')
        .next()?
        .trim_ascii();
    let digits = std::str::from_utf8(digits).ok().filter(|digits| {
        !digits.is_empty() && digits.len() < 16 && digits.bytes().all(|b| b.is_ascii_hexdigit())
    })?;
    Some((usize::from_str_radix(digits, 16).ok()?, end + 1))
}

/// The requests in `sent`, at most `most`; it stops at bytes that are not a request.
pub(super) fn requests(sent: &Bytes, most: usize) -> Vec<Message> {
    let (mut at, mut messages) = (0, Vec::new());
    while messages.len() < most
        && let Some(len) = head::head_len(&sent[at..])
    {
        let head = sent.slice(at..at + len);
        let Some(parsed) = Head::parse(&head) else {
            break;
        };
        let length = match parsed.is_chunked() {
            true => Length::Chunks,
            false => Length::Exact(parsed.content_length().unwrap_or(0)),
        };
        let (message, body_len) = Message::of(head.clone(), length, &sent.slice(at + len..));
        at += len + body_len;
        messages.push(message);
    }
    messages
}

/// The final responses in `received` to requests of these methods; interim responses are skipped.
pub(super) fn answers(received: &Bytes, methods: &[http::Method]) -> Vec<Message> {
    let (mut at, mut messages) = (0, Vec::new());
    for method in methods {
        let (head, status) = loop {
            let Some(len) = head::head_len(&received[at..]) else {
                return messages;
            };
            let head = received.slice(at..at + len);
            let Some(status) = Head::parse(&head).and_then(|head| head.status()) else {
                return messages;
            };
            at += len;
            if !(100..200).contains(&status) || status == 101 {
                break (head, status);
            }
        };
        let length = match Head::parse(&head) {
            // The bytes after a switch of protocols are not HTTP.
            _ if status == 101 => return messages,
            _ if !head::has_body(method, status) => Length::Exact(0),
            Some(parsed) if parsed.is_chunked() => Length::Chunks,
            Some(parsed) => parsed
                .content_length()
                .map_or(Length::ToTheEnd, Length::Exact),
            None => return messages,
        };
        let (message, body_len) = Message::of(head, length, &received.slice(at..));
        at += body_len;
        messages.push(message);
    }
    messages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(messages: &[Message]) -> Vec<(String, String, bool)> {
        let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
        let parts = messages.iter().map(|message| {
            (
                text(&message.head),
                text(&message.framed_body),
                message.is_cut,
            )
        });
        parts.collect()
    }

    fn of(head: &str, body: &str, is_cut: bool) -> (String, String, bool) {
        (head.to_owned(), body.to_owned(), is_cut)
    }

    #[test]
    fn responses_are_split_by_chunks_length_status_and_end() {
        let chunks = "5;a=\"b\"\r\nhello\r\n0\r\nX-Trailer: end\r\n\r\n";
        let heads = [
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 200 Fine\r\nTransfer-ENCODING: chunked\r\n\r\n",
            "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n",
            "HTTP/1.1 302 Found\r\nContent-Length: 3\r\n\r\n",
            "HTTP/1.0 200 OK\r\n\r\n",
        ];
        let [interim, chunked, unmodified, to_head, counted, to_end] = heads;
        let wire = [
            interim, chunked, chunks, unmodified, to_head, counted, "bye", to_end, "the rest",
        ]
        .concat();
        let get = http::Method::GET;
        let methods = [
            get.clone(),
            get.clone(),
            http::Method::HEAD,
            get.clone(),
            get,
        ];
        assert_eq!(
            parts(&answers(&wire.into(), &methods)),
            [
                of(chunked, chunks, false),
                of(unmodified, "", false),
                of(to_head, "", false),
                of(counted, "bye", false),
                of(to_end, "the rest", false),
            ]
        );
        let first = &answers(&[chunked, chunks].concat().into(), &methods[..1])[0];
        assert_eq!((&first.body[..], first.has_trailers), (&b"hello"[..], true));
    }

    #[test]
    fn a_body_cut_by_the_connection_end_is_marked() {
        let get = [http::Method::GET];
        for (head, body) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", "12345678"),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "5\r\nab",
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "0\r\nT: x\r\n",
            ),
        ] {
            let wire = Bytes::from([head, body].concat());
            assert_eq!(parts(&answers(&wire, &get)), [of(head, body, true)]);
        }
        assert_eq!(answers(&"HTTP/1.1 200 OK\r\n".into(), &get), []);
        assert_eq!(answers(&"\x16\x03\x01 no answer\r\n\r\n".into(), &get), []);
    }

    #[test]
    fn requests_are_split_and_keep_their_bodies() {
        let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
        let post = "POST /x HTTP/1.1\r\ncontent-length: 3\r\n\r\n";
        let wire = Bytes::from([get, post, "x=1", get].concat());
        assert_eq!(
            parts(&requests(&wire, 9)),
            [
                of(get, "", false),
                of(post, "x=1", false),
                of(get, "", false)
            ]
        );
        assert_eq!(requests(&wire, 2).len(), 2);
    }
}
