//! The recorded head of an answer, to be sent over HTTP/1.1 byte for byte (RFC 9112 §6.3).
//!
//! A handler puts a [`LiteralHead`] into the extensions of its response. Where
//! [`ServerOptions::literal_heads`](crate::options::ServerOptions::literal_heads) is on, it takes the place of the
//! response's status and headers, and the body is framed as it says:
//!
//! ```text
//! the head says                              the body ends
//! status 204, 304; or HEAD was asked         with the head
//! Transfer-Encoding: .., chunked             with the last chunk: one of all bytes, and the empty one
//! Transfer-Encoding, not chunked at last     with the connection
//! Content-Length: N                          after N bytes, or with the connection if there are fewer
//! neither                                    with the connection
//! ```
//!
//! The connection ends with the answer where the head says so. Other protocols have no place for such a head, and
//! send the response as it is; so does HTTP/1.1 where head and body do not fit ([`LiteralHead::allows_body_len`]).

use bytes::Bytes;
use http::StatusCode;

/// The head of an answer, status line to blank line.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LiteralHead {
    bytes: Bytes,
    status: StatusCode,
    body_end: BodyEnd,
    closes: bool,
}

/// How a head says where its body ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum BodyEnd {
    /// There is none.
    NoBody,
    /// After so many bytes.
    Length(u64),
    /// With a chunk of no bytes.
    Chunked,
    /// With the connection.
    Connection,
}

/// Why bytes cannot go out as the head of an answer.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LiteralHeadError {
    /// Not what a client would take for a head of HTTP/1.1.
    #[error("want the head of an HTTP/1.0 or HTTP/1.1 answer: {0}")]
    Syntax(httparse::Error),
    /// The blank line is not where it should be.
    #[error("want a head of {got} bytes that ends with its blank line, found the line {found:?}")]
    End {
        /// Bytes that came.
        got: usize,
        /// Bytes up to the end of the blank line; `None` without one.
        found: Option<usize>,
    },
    /// An answer that only goes before another, or a status that is none.
    #[error("want the status of a final answer, got {0}")]
    Status(u16),
    /// Content-Length is no number, or two.
    #[error("want one length in content-length, got {0:?}")]
    Length(String),
}

impl LiteralHead {
    /// Reads how `bytes` want their body framed.
    ///
    /// Read as lenient clients do: folded lines, white space before a colon and lines without one may be there.
    ///
    /// # Errors
    ///
    /// Why they are no whole head of one final answer whose body has a certain end.
    pub fn new(bytes: Bytes) -> Result<Self, LiteralHeadError> {
        let lines = bytes.iter().filter(|&&byte| byte == b'\n').count();
        let mut fields = vec![httparse::EMPTY_HEADER; lines];
        let mut head = httparse::Response::new(&mut fields);
        let parsed = httparse::ParserConfig::default()
            .allow_obsolete_multiline_headers_in_responses(true)
            .allow_spaces_after_header_name_in_responses(true)
            .ignore_invalid_headers_in_responses(true)
            .parse_response(&mut head, &bytes)
            .map_err(LiteralHeadError::Syntax)?;
        // httparse passes over empty lines in front.
        if bytes.first() != Some(&b'H') {
            return Err(LiteralHeadError::Syntax(httparse::Error::Version));
        }
        let (got, found) = (bytes.len(), complete(parsed));
        if found != Some(got) {
            return Err(LiteralHeadError::End { got, found });
        }
        let code = head.code.unwrap_or_default();
        let status = StatusCode::from_u16(code).map_err(|_| LiteralHeadError::Status(code))?;
        if status.is_informational() {
            return Err(LiteralHeadError::Status(code));
        }
        let members = |name| members(head.headers, name);
        let body_end = if spdy_http::response::has_no_body(&http::Method::GET, status) {
            BodyEnd::NoBody
        } else if let Some(coding) = members("transfer-encoding").last() {
            match coding.eq_ignore_ascii_case(b"chunked") {
                true => BodyEnd::Chunked,
                false => BodyEnd::Connection,
            }
        } else {
            match one_length(members("content-length"))? {
                Some(length) => BodyEnd::Length(length),
                None => BodyEnd::Connection,
            }
        };
        let says = |option: &[u8]| members("connection").any(|it| it.eq_ignore_ascii_case(option));
        let closes = body_end == BodyEnd::Connection
            || says(b"close")
            || head.version == Some(0) && !says(b"keep-alive");
        Ok(Self {
            bytes,
            status,
            body_end,
            closes,
        })
    }

    /// The head itself.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Its status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Where it says that its body ends.
    #[must_use]
    pub fn body_end(&self) -> BodyEnd {
        self.body_end
    }

    /// Whether the connection ends with the answer.
    #[must_use]
    pub fn closes_connection(&self) -> bool {
        self.closes
    }

    /// Whether a body of `len` bytes can follow. Fewer bytes than announced can: the connection then ends early, as
    /// that of a server that broke off.
    #[must_use]
    pub fn allows_body_len(&self, len: u64) -> bool {
        match self.body_end {
            BodyEnd::NoBody => len == 0,
            BodyEnd::Length(announced) => len <= announced,
            BodyEnd::Chunked | BodyEnd::Connection => true,
        }
    }
}

fn complete(parsed: httparse::Status<usize>) -> Option<usize> {
    match parsed {
        httparse::Status::Complete(len) => Some(len),
        httparse::Status::Partial => None,
    }
}

/// The members of the comma-separated lists called `name`, in order.
fn members<'a>(
    fields: &'a [httparse::Header<'a>],
    name: &'static str,
) -> impl Iterator<Item = &'a [u8]> {
    fields
        .iter()
        .filter(move |field| field.name.eq_ignore_ascii_case(name))
        .flat_map(|field| field.value.split(|&byte| byte == b','))
        .map(<[u8]>::trim_ascii)
        .filter(|member| !member.is_empty())
}

/// The one number that all of `lengths` are, if there are any. Two servers in a row could take two numbers each its
/// own way.
fn one_length<'a>(
    lengths: impl Iterator<Item = &'a [u8]>,
) -> Result<Option<u64>, LiteralHeadError> {
    let mut one = None;
    for length in lengths {
        let text = String::from_utf8_lossy(length);
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        match (number, one) {
            (Some(number), None) => one = Some(number),
            (Some(number), Some(known)) if number == known => {}
            _ => return Err(LiteralHeadError::Length(text.into_owned())),
        }
    }
    Ok(one)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<LiteralHead, LiteralHeadError> {
        LiteralHead::new(Bytes::from(text.to_owned()))
    }

    #[test]
    fn a_literal_head_gives_body_end_and_connection_close() {
        use BodyEnd::{Chunked, Connection, Length, NoBody};
        for (fields, body_end, closes) in [
            ("1.1 200 OK\r\ncontent-LENGTH:  5 ", Length(5), false),
            (
                "1.1 200\r\nContent-Length: 5, 5\r\ncontent-length:5",
                Length(5),
                false,
            ),
            (
                "1.1 200 Fine\r\nX:\r\nTransfer-Encoding: chunked",
                Chunked,
                false,
            ),
            (
                "1.1 200 \r\nTransfer-Encoding: gzip,\r\n Chunked\r\nContent-Length: 5",
                Chunked,
                false,
            ),
            ("1.1 200 OK\r\nTransfer-Encoding: gzip", Connection, true),
            ("1.1 200 OK\r\na line that is none", Connection, true),
            ("1.1 304 Same\r\nContent-Length: 5", NoBody, false),
            ("1.1 204 No\r\nConnection: a, Close", NoBody, true),
            ("1.0 200 OK\r\nContent-Length: 0", Length(0), true),
            (
                "1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0",
                Length(0),
                false,
            ),
            (
                "1.1 200 OK\r\nConnection: close, keep-alive\nContent-Length: 0",
                Length(0),
                true,
            ),
        ] {
            let head = read(&format!("HTTP/{fields}\r\n\r\n"))
                .unwrap_or_else(|bad| panic!("{fields}: {bad}"));
            assert_eq!(
                (head.body_end(), head.closes_connection()),
                (body_end, closes),
                "{fields}"
            );
        }
    }

    #[test]
    fn bytes_that_are_not_one_final_response_head_are_rejected() {
        use LiteralHeadError::{End, Length, Status, Syntax};
        let end = |got, found| End { got, found };
        for (text, want) in [
            ("GET / HTTP/1.1\r\n\r\n", Syntax(httparse::Error::Version)),
            (
                "\r\nHTTP/1.1 200 OK\r\n\r\n",
                Syntax(httparse::Error::Version),
            ),
            ("HTTP/2 200 OK\r\n\r\n", Syntax(httparse::Error::Version)),
            ("HTTP/1.1 200 OK\r\n", end(17, None)),
            ("HTTP/1.1 200 OK\r\n\r\nbody", end(23, Some(19))),
            ("", Syntax(httparse::Error::Version)),
            ("HTTP/1.1 100 Continue\r\n\r\n", Status(100)),
            ("HTTP/1.1 099 Odd\r\n\r\n", Status(99)),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
                Length("6".to_owned()),
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\n",
                Length("+5".to_owned()),
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551616\r\n\r\n",
                Length("18446744073709551616".to_owned()),
            ),
        ] {
            assert_eq!(read(text), Err(want), "{text:?}");
        }
    }
}
