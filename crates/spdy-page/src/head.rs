//! Literal heads: parses recorded ones, and creates missing ones.
//!
//! ```text
//! HTTP/1.1 200 OK␍␊          line      (or GET /x HTTP/1.1)
//! Content-Type: text/css␍␊   fields    in their order, with duplicates and case
//! ␍␊                         end       a bare ␊ also ends a line
//! ```
//!
//! Parsing is lenient, because archives contain invalid heads (such as lines without a colon): only a head without a first line is
//! rejected. Heads are never rewritten here; only an importer that had to change a body calls [`with_field`].

use bytes::{Bytes, BytesMut};
use url::{Position, Url};

/// A view of a literal head.
#[derive(Clone, Debug)]
pub struct Head<'a> {
    line: &'a [u8],
    fields: &'a [u8],
}

impl<'a> Head<'a> {
    /// Parses `bytes`, a head with or without its blank line; `None` if there is no first line.
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (line, fields) = split_line(bytes);
        (!line.is_empty()).then_some(Self { line, fields })
    }

    /// The request line or status line, without its end.
    pub fn line(&self) -> &'a [u8] {
        self.line
    }

    /// The status code, if this is the head of a response.
    pub fn status(&self) -> Option<u16> {
        let mut words = self
            .line
            .split(|&byte| byte == b' ')
            .filter(|word| !word.is_empty());
        words
            .next()
            .filter(|version| version.starts_with(b"HTTP/"))?;
        let code: u16 = std::str::from_utf8(words.next()?).ok()?.parse().ok()?;
        (100..=999).contains(&code).then_some(code)
    }

    /// Names and values in their order. Names keep their case; values are trimmed.
    pub fn fields(&self) -> impl Iterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        let mut rest = self.fields;
        std::iter::from_fn(move || {
            loop {
                if rest.is_empty() {
                    return None;
                }
                let (line, after) = split_line(rest);
                rest = after;
                if line.is_empty() {
                    return None;
                }
                if let Some(colon) = line.iter().position(|&byte| byte == b':') {
                    return Some((line[..colon].trim_ascii(), line[colon + 1..].trim_ascii()));
                }
            }
        })
    }

    /// Every value of `name` (case-insensitive), in order.
    pub fn values(&self, name: &'a str) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        self.fields()
            .filter(move |(field, _)| field.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// The first value of `name` (case-insensitive) that is text.
    pub fn value(&self, name: &'a str) -> Option<&'a str> {
        self.values(name)
            .find_map(|value| std::str::from_utf8(value).ok())
    }

    /// The content codings in the order in which they were applied, in lower case, without `identity`.
    pub fn content_codings(&self) -> Vec<String> {
        list(self.values("content-encoding"))
            .filter(|coding| coding != "identity")
            .collect()
    }

    /// True if the last transfer coding is `chunked`.
    pub fn is_chunked(&self) -> bool {
        list(self.values("transfer-encoding"))
            .last()
            .is_some_and(|coding| coding == "chunked")
    }

    /// The announced length of the body in bytes, if it is a number.
    pub fn content_length(&self) -> Option<u64> {
        self.value("content-length")?.parse().ok()
    }
}

/// The members of comma-separated lists, in lower case.
fn list<'a>(values: impl Iterator<Item = &'a [u8]>) -> impl Iterator<Item = String> {
    values
        .flat_map(|value| value.split(|&byte| byte == b','))
        .map(|member| String::from_utf8_lossy(member.trim_ascii()).to_ascii_lowercase())
        .filter(|member| !member.is_empty())
}

/// The first line of `bytes` without its end, and the rest.
fn split_line(bytes: &[u8]) -> (&[u8], &[u8]) {
    let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else {
        return (bytes, &[]);
    };
    let line = &bytes[..end];
    (line.strip_suffix(b"\r").unwrap_or(line), &bytes[end + 1..])
}

/// Length of the head at the start of `bytes`, including its blank line; `None` without a blank line.
pub fn head_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(end) = bytes[at..].iter().position(|&byte| byte == b'\n') {
        let line = &bytes[at..at + end];
        at += end + 1;
        if line.is_empty() || line == b"\r" {
            return Some(at);
        }
    }
    None
}

/// True if a response to `method` with `status` can have a body (RFC 9112 §6.3).
pub fn has_body(method: &http::Method, status: u16) -> bool {
    *method != http::Method::HEAD && !matches!(status, 100..=199 | 204 | 304)
}

/// A head from its first line and its fields. Line ends inside a value become spaces.
pub fn synthesize<N: AsRef<str>, V: AsRef<str>>(
    line: &str,
    fields: impl IntoIterator<Item = (N, V)>,
) -> Bytes {
    let mut head = BytesMut::new();
    push_clean(&mut head, line);
    head.extend_from_slice(b"\r\n");
    for (name, value) in fields {
        push_clean(&mut head, name.as_ref());
        head.extend_from_slice(b": ");
        push_clean(&mut head, value.as_ref());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head.freeze()
}

fn push_clean(head: &mut BytesMut, text: &str) {
    head.extend(text.bytes().map(|byte| {
        if matches!(byte, b'\r' | b'\n' | 0) {
            b' '
        } else {
            byte
        }
    }));
}

/// `head` without any field `name`; with a `value`, one such field at the position of the first (or at the end).
pub fn with_field(head: &[u8], name: &str, value: Option<&str>) -> Bytes {
    let mut out = BytesMut::with_capacity(head.len() + 32);
    let mut value = value;
    let (mut rest, mut first) = (head, true);
    while !rest.is_empty() {
        let (line, after) = split_line(rest);
        let whole = &rest[..rest.len() - after.len()];
        rest = after;
        let end = line.is_empty() && !first;
        let colon = line.iter().position(|&byte| byte == b':');
        let named = !first
            && colon.is_some_and(|at| {
                line[..at]
                    .trim_ascii()
                    .eq_ignore_ascii_case(name.as_bytes())
            });
        if (named || end)
            && let Some(value) = value.take()
        {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(b": ");
            push_clean(&mut out, value);
            out.extend_from_slice(b"\r\n");
        }
        if !named {
            out.extend_from_slice(whole);
        }
        first = false;
        if end {
            break;
        }
    }
    out.freeze()
}

/// Host, with the port if it is not the scheme's default: the value of a Host field.
pub fn authority(url: &Url) -> String {
    url[Position::BeforeHost..Position::AfterPort].to_owned()
}

/// Path and query: the target of a request line.
pub fn target(url: &Url) -> String {
    let target = &url[Position::BeforePath..Position::AfterQuery];
    if target.starts_with('/') {
        target.to_owned()
    } else {
        format!("/{target}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &[u8] = b"HTTP/1.1 404 Not Found\r\nServer: a\nbroken line\r\nset-cookie: 1\r\nSet-Cookie:2 \r\nContent-Encoding: GZIP, br\r\n\r\nbody: x\r\n";

    #[test]
    fn fields_keep_order_case_and_duplicates() {
        let head = Head::parse(HEAD).unwrap();
        assert_eq!(head.status(), Some(404));
        let names: Vec<_> = head.fields().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                &b"Server"[..],
                b"set-cookie",
                b"Set-Cookie",
                b"Content-Encoding"
            ]
        );
        assert_eq!(head.values("SET-COOKIE").collect::<Vec<_>>(), [b"1", b"2"]);
        assert_eq!(head.content_codings(), ["gzip", "br"]);
    }

    #[test]
    fn a_head_ends_at_its_blank_line_and_not_before() {
        assert_eq!(head_len(HEAD), Some(HEAD.len() - b"body: x\r\n".len()));
        assert_eq!(head_len(b"HTTP/1.1 200 OK\n\nx"), Some(17));
        assert_eq!(head_len(b"HTTP/1.1 200 OK\r\nA: b\r\n"), None);
    }

    #[test]
    fn a_request_line_has_no_status() {
        assert_eq!(
            Head::parse(b"GET /200 HTTP/1.1\r\n\r\n").unwrap().status(),
            None
        );
        assert_eq!(Head::parse(b"HTTP/1.1 20\r\n\r\n").unwrap().status(), None);
        assert!(Head::parse(b"\r\n").is_none());
    }

    #[test]
    fn a_field_is_replaced_in_place_or_appended() {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nA: b\r\ncontent-length: 9\r\n\r\n";
        assert_eq!(
            &with_field(head, "Content-Length", Some("7"))[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nA: b\r\n\r\n"
        );
        assert_eq!(
            &with_field(head, "C", Some("7"))[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nA: b\r\ncontent-length: 9\r\nC: 7\r\n\r\n"
        );
        assert_eq!(
            &with_field(head, "Content-Length", None)[..],
            b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n"
        );
    }

    #[test]
    fn a_value_cannot_smuggle_a_line() {
        assert_eq!(
            &synthesize("GET / HTTP/1.1", [("A", "b\r\nC: d")])[..],
            b"GET / HTTP/1.1\r\nA: b  C: d\r\n\r\n"
        );
    }
}
