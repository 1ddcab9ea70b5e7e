//! Literal heads in the place of those that hyper writes.
//!
//! hyper knows fields by name and writes them its own way, so what it writes is read again on its way to the socket:
//!
//! ```text
//!  handler --> plan ----> hyper --> head | body of N bytes | head | body ..
//!               |                    |          |
//!               `-- N, literal? ---> replaced   counted       interim answers, and what hyper answers by itself,
//!                                    +chunk     +last chunk   pass as they are
//!                                      \__________/
//!                                    socket
//! ```
//!
//! For a literal answer hyper gets no fields except whether the connection stays open, and always a body of known
//! length. Counting shows where a head begins: an answer of unknown length ends the connection.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes, BytesMut};
use http::{HeaderValue, Method, Response, Version, header};
use parking_lot::{Mutex, MutexGuard};
use spdy::body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::network::BoxIo;
use crate::shims::hyper::literal_head::{BodyEnd, LiteralHead};

/// Bytes of a connection that wait to be written, past which no more are taken; also the most that are taken at once.
const MAX_BUFFERED: usize = 64 * 1024;

/// The end of a chunked body, after its data.
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

/// The answers of a connection that hyper has yet to write, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiteralResponses(Arc<Mutex<VecDeque<ResponsePlan>>>);

/// How one answer goes out.
#[derive(Debug)]
struct ResponsePlan {
    /// In the place of hyper's head, up to the first byte of data.
    head: Option<Bytes>,
    /// Bytes of body that hyper writes; `None`: until the connection ends.
    body: Option<u64>,
    /// After them.
    end: &'static [u8],
}

impl LiteralResponses {
    fn queue(&self) -> MutexGuard<'_, VecDeque<ResponsePlan>> {
        self.0.lock()
    }

    /// Notes how `response` to such a request goes out; what hyper is to be told of it.
    pub(crate) fn plan(
        &self,
        method: &Method,
        version: Version,
        mut response: Response<Body>,
    ) -> Response<Body> {
        let status = response.status();
        let tunnel = *method == Method::CONNECT;
        let body = match spdy_http::response::has_no_body(method, status)
            || tunnel && status.is_success()
        {
            true => Some(0),
            false => http_body::Body::size_hint(response.body()).exact(),
        };
        let literal = response.extensions_mut().remove::<LiteralHead>();
        let literal = literal.filter(|head| head.status() == status && !tunnel);
        let literally = literal
            .zip(body)
            .and_then(|(head, body)| plan_response(&head, body, method, version));
        let (planned, closes) = match literally {
            Some(literally) => {
                response.headers_mut().clear();
                literally
            }
            None => {
                let (head, end) = (None, &b""[..]);
                (ResponsePlan { head, body, end }, body.is_none())
            }
        };
        if closes {
            let close = HeaderValue::from_static("close");
            response.headers_mut().insert(header::CONNECTION, close);
        }
        self.queue().push_back(planned);
        response
    }

    /// `io` with the heads that were planned in the place of those that are written to it.
    pub(crate) fn wrap(&self, io: BoxIo) -> BoxIo {
        Box::new(HeadRewriteIo {
            io,
            rewriter: HeadRewriter {
                answers: self.clone(),
                stage: WriteStage::Head,
                head: BytesMut::new(),
            },
            held: BytesMut::new(),
        })
    }
}

/// How `head` and `body` bytes after it go out, and whether the connection ends with them; `None` if they cannot.
fn plan_response(
    head: &LiteralHead,
    body: u64,
    method: &Method,
    version: Version,
) -> Option<(ResponsePlan, bool)> {
    let mut planned = ResponsePlan {
        head: Some(head.bytes().clone()),
        body: Some(body),
        end: b"",
    };
    // An HTTP/1.0 client knows no chunks, and cannot tell from such a head that the connection stays.
    let is_old = version < Version::HTTP_11;
    let closes = head.closes_connection() || is_old;
    if *method == Method::HEAD {
        return Some((planned, closes));
    }
    let is_cut = match head.body_end() {
        BodyEnd::Length(announced) => body < announced,
        BodyEnd::Chunked if is_old => return None,
        BodyEnd::Chunked => {
            let (size, end) = match body {
                0 => (String::new(), &LAST_CHUNK[2..]),
                _ => (format!("{body:x}\r\n"), LAST_CHUNK),
            };
            planned.head = Some([head.bytes(), size.as_bytes()].concat().into());
            planned.end = end;
            false
        }
        BodyEnd::NoBody | BodyEnd::Connection => false,
    };
    head.allows_body_len(body)
        .then_some((planned, closes || is_cut))
}

/// Where in hyper's bytes we are.
#[derive(Debug)]
enum WriteStage {
    /// In a head, of which so much was seen.
    Head,
    /// In a body.
    Body { left: u64, end: &'static [u8] },
    /// In what lasts until the connection ends.
    Rest,
}

/// Reads what hyper writes, and tells what goes out.
#[derive(Debug)]
struct HeadRewriter {
    answers: LiteralResponses,
    stage: WriteStage,
    /// Of hyper's head, as far as it came.
    head: BytesMut,
}

impl HeadRewriter {
    /// Adds to `out` what goes out for `bytes`, the next that hyper wrote.
    fn rewrite(&mut self, mut bytes: &[u8], out: &mut BytesMut) {
        while !bytes.is_empty() {
            match &mut self.stage {
                WriteStage::Head => {
                    let seen = self.head.len();
                    self.head.extend_from_slice(bytes);
                    // The blank line may have begun among what was seen.
                    let from = seen.saturating_sub(3);
                    let end = self.head[from..]
                        .windows(4)
                        .position(|four| four == b"\r\n\r\n");
                    let Some(end) = end.map(|at| from + at + 4) else {
                        return;
                    };
                    bytes.advance(end - seen);
                    self.head.truncate(end);
                    self.end_head(out);
                }
                WriteStage::Body { left, end } => {
                    let len = usize::try_from(*left)
                        .unwrap_or(usize::MAX)
                        .min(bytes.len());
                    out.extend_from_slice(&bytes[..len]);
                    bytes.advance(len);
                    *left -= len as u64;
                    if *left == 0 {
                        out.extend_from_slice(end);
                        self.stage = WriteStage::Head;
                    }
                }
                WriteStage::Rest => {
                    out.extend_from_slice(bytes);
                    return;
                }
            }
        }
    }

    /// Decides on the head that is all there.
    fn end_head(&mut self, out: &mut BytesMut) {
        let head = self.head.split();
        if head.starts_with(b"HTTP/1.1 1") {
            out.extend_from_slice(&head);
            return;
        }
        // hyper answers by itself what it cannot read, and ends the connection.
        let planned = self.answers.queue().pop_front();
        let planned = planned.unwrap_or(ResponsePlan {
            head: None,
            body: None,
            end: b"",
        });
        out.extend_from_slice(planned.head.as_deref().unwrap_or(&head));
        self.stage = match planned.body {
            None => WriteStage::Rest,
            Some(0) => {
                out.extend_from_slice(planned.end);
                WriteStage::Head
            }
            Some(left) => WriteStage::Body {
                left,
                end: planned.end,
            },
        };
    }
}

/// A connection whose written heads are replaced.
struct HeadRewriteIo {
    io: BoxIo,
    rewriter: HeadRewriter,
    /// To be written.
    held: BytesMut,
}

impl HeadRewriteIo {
    /// Writes what is held until no more than `most` bytes are left.
    fn poll_held(&mut self, cx: &mut Context<'_>, most: usize) -> Poll<io::Result<()>> {
        while self.held.len() > most {
            let len = ready!(Pin::new(&mut self.io).poll_write(cx, &self.held))?;
            if len == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.held.advance(len);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncRead for HeadRewriteIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, into)
    }
}

impl AsyncWrite for HeadRewriteIo {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        ready!(this.poll_held(cx, MAX_BUFFERED))?;
        let len = bytes.len().min(MAX_BUFFERED);
        this.rewriter.rewrite(&bytes[..len], &mut this.held);
        Poll::Ready(Ok(len))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(cx, 0))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_held(cx, 0))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HYPERS: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n";

    fn response(literal: Option<&str>, body: &Bytes) -> Response<Body> {
        let mut response = Response::new(Body::full(body.clone()));
        if let Some(head) = literal {
            let head = LiteralHead::new(head.to_owned().into()).expect("it is a head");
            *response.status_mut() = head.status();
            response.extensions_mut().insert(head);
        }
        response
    }

    /// One answer: what hyper is given, what it writes, and what is to go out.
    #[derive(Clone, Debug)]
    struct Case {
        literal: Option<&'static str>,
        method: Method,
        body: Bytes,
        interim: bool,
    }

    impl Case {
        fn is_bodiless(&self) -> bool {
            self.method == Method::HEAD
        }

        fn written(&self) -> Vec<u8> {
            let body = if self.is_bodiless() {
                &b""[..]
            } else {
                &self.body
            };
            [self.interim(), HYPERS.as_bytes(), body].concat()
        }

        fn interim(&self) -> &[u8] {
            match self.interim {
                true => b"HTTP/1.1 100 Continue\r\n\r\n",
                false => b"",
            }
        }

        fn wanted(&self) -> Vec<u8> {
            let head = self.literal.unwrap_or(HYPERS);
            let mut wanted = [self.interim(), head.as_bytes()].concat();
            if self.is_bodiless() {
                return wanted;
            }
            if !head.contains("Chunked") {
                return [wanted, self.body.to_vec()].concat();
            }
            if !self.body.is_empty() {
                wanted.extend_from_slice(format!("{:x}\r\n", self.body.len()).as_bytes());
                wanted.extend_from_slice(&self.body);
                wanted.extend_from_slice(b"\r\n");
            }
            wanted.extend_from_slice(b"0\r\n\r\n");
            wanted
        }
    }

    fn any_case() -> impl Strategy<Value = Case> {
        let literal = prop::sample::select(vec![
            None,
            Some(
                "HTTP/1.1 200 Fine, thanks\r\nX-Odd:  a \r\n  b\r\nTransfer-Encoding: Chunked\r\n\r\n",
            ),
            Some("HTTP/1.1 404 \r\nb: 1\r\nA: 2\r\nTRANSFER-ENCODING:Chunked\r\nb:3\r\n\r\n"),
            Some("HTTP/1.0 200 OK\nContent-Length: 999\n\n"),
            Some("HTTP/1.1 200 until it ends\r\n\r\n"),
        ]);
        // Bodies that look like heads, and as short as one byte.
        let body = prop::sample::select(vec![
            "",
            "\r",
            "\r\n\r\n",
            "HTTP/1.1 200 OK\r\n\r\nbody",
            "0123456789abcdef0",
        ]);
        let method = prop::sample::select(vec![Method::GET, Method::HEAD, Method::POST]);
        (literal, body, method, any::<bool>()).prop_map(|(literal, body, method, interim)| Case {
            literal,
            method,
            body: Bytes::from_static(body.as_bytes()),
            interim,
        })
    }

    fn rewriter(answers: &LiteralResponses) -> HeadRewriter {
        HeadRewriter {
            answers: answers.clone(),
            stage: WriteStage::Head,
            head: BytesMut::new(),
        }
    }

    proptest! {
        /// However hyper cuts what it writes, the same goes out; and what it answers by itself passes.
        #[test]
        fn any_cut_of_any_answers_gives_the_same(
            cases in prop::collection::vec(any_case(), 1..6),
            cuts in prop::collection::vec(1..40_usize, 1..60),
        ) {
            let answers = LiteralResponses::default();
            for case in &cases {
                answers.plan(&case.method, Version::HTTP_11, response(case.literal, &case.body));
            }
            let own = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 4\r\n\r\nHTTP/1.1 rest\r\n\r\n";
            let written: Vec<u8> = cases.iter().flat_map(Case::written).chain(*own).collect();
            let wanted: Vec<u8> = cases.iter().flat_map(Case::wanted).chain(*own).collect();

            let (mut rewriter, mut out) = (rewriter(&answers), BytesMut::new());
            let (mut rest, mut cuts) = (&written[..], cuts.iter().cycle());
            while !rest.is_empty() {
                let len = (*cuts.next().expect("there is one cut")).min(rest.len());
                rewriter.rewrite(&rest[..len], &mut out);
                rest = &rest[len..];
            }
            prop_assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&wanted));
        }
    }

    /// What hyper is told, and what is planned: the connection's end, the head, bytes of body.
    fn planned(
        method: &Method,
        version: Version,
        response: Response<Body>,
    ) -> (bool, bool, Option<u64>) {
        let answers = LiteralResponses::default();
        let told = answers.plan(method, version, response);
        let planned = answers.queue().pop_front().expect("it was planned");
        (
            told.headers().contains_key("connection"),
            planned.head.is_some(),
            planned.body,
        )
    }

    #[test]
    fn a_body_that_the_literal_head_cannot_frame_uses_the_fields() {
        let five = Bytes::from_static(b"12345");
        let length =
            |announced: u8| format!("HTTP/1.1 200 OK\r\nContent-Length: {announced}\r\n\r\n");
        let planned_for = |head: &str, method: &Method, version| {
            planned(method, version, response(Some(head), &five))
        };
        let get = |head: &str| planned_for(head, &Method::GET, Version::HTTP_11);
        let (fields, literally, and_ends) = (
            (false, false, Some(5)),
            (false, true, Some(5)),
            (true, true, Some(5)),
        );
        assert_eq!(get(&length(5)), literally);
        assert_eq!(get(&length(4)), fields, "more than was announced");
        assert_eq!(get(&length(6)), and_ends, "less than was announced");
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(get(chunked), literally);
        assert_eq!(
            planned_for(chunked, &Method::GET, Version::HTTP_10),
            fields,
            "chunks to an old client"
        );
        assert_eq!(
            planned_for(&length(5), &Method::GET, Version::HTTP_10),
            and_ends
        );
        assert_eq!(
            planned_for(&length(9), &Method::HEAD, Version::HTTP_11),
            (false, true, Some(0))
        );
        assert_eq!(
            planned_for(&length(5), &Method::CONNECT, Version::HTTP_11),
            (false, false, Some(0))
        );

        let mut other = response(Some(&length(5)), &five);
        *other.status_mut() = http::StatusCode::NOT_FOUND;
        assert_eq!(
            planned(&Method::GET, Version::HTTP_11, other),
            fields,
            "the head of another answer"
        );

        let unknown = Body::from_stream(futures_util::stream::iter([Ok::<_, io::Error>(five)]));
        let ends = (true, false, None);
        assert_eq!(
            planned(&Method::GET, Version::HTTP_11, Response::new(unknown)),
            ends,
            "nobody knows its length"
        );
    }
}
