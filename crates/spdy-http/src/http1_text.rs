//! Computes the length of a head as HTTP/1.1 text: the measure of "header bytes before compression".
//!
//! It is the same for every protocol, so that the bytes on the wire of SPDY and HTTP/2 are compared with the same number: the
//! request or status line, `name: value` with CRLF for each header (a Host header from the URI if there is none), and the empty
//! line.

use http::header;

use crate::request::{host_header, path_of};

/// `HTTP/1.1`.
const VERSION: usize = 8;
/// CR and LF.
const CRLF: usize = 2;

/// Bytes of a request's head as HTTP/1.1 text, its target in origin form.
#[must_use]
pub fn request_head_bytes(head: &http::request::Parts) -> usize {
    let target = if head.method == http::Method::CONNECT {
        host_header(head).map_or(0, str::len)
    } else {
        path_of(&head.uri)
            .iter()
            .map(|part| part.len())
            .sum::<usize>()
    };
    let line = head.method.as_str().len() + 1 + target + 1 + VERSION + CRLF;
    let host = match head.headers.contains_key(header::HOST) {
        true => 0,
        false => host_header(head).map_or(0, |host| "Host: ".len() + host.len() + CRLF),
    };
    line + host + headers_bytes(&head.headers) + CRLF
}

/// Bytes of a response's head as HTTP/1.1 text, with the usual reason phrase.
#[must_use]
pub fn response_head_bytes(head: &http::response::Parts) -> usize {
    let reason = head.status.canonical_reason().unwrap_or_default();
    let line = VERSION + 1 + head.status.as_str().len() + 1 + reason.len() + CRLF;
    line + headers_bytes(&head.headers) + CRLF
}

fn headers_bytes(headers: &http::HeaderMap) -> usize {
    headers
        .iter()
        .map(|(name, value)| name.as_str().len() + 2 + value.len() + CRLF)
        .sum()
}

#[cfg(test)]
mod tests {
    use http::{Request, Response};

    use super::*;

    #[test]
    fn a_request_is_as_long_as_its_text() {
        let text =
            "GET /a?b HTTP/1.1\r\nHost: example.org:8080\r\naccept: */*\r\ncookie: x\r\n\r\n";
        let request = Request::get("http://example.org:8080/a?b")
            .header("accept", "*/*")
            .header("cookie", "x");
        let (head, ()) = request.body(()).expect("the head is valid").into_parts();
        assert_eq!(request_head_bytes(&head), text.len());
        let origin_form = Request::get("/a?b").header("host", "example.org:8080");
        let request = origin_form.header("accept", "*/*").header("cookie", "x");
        let (head, ()) = request.body(()).expect("the head is valid").into_parts();
        assert_eq!(request_head_bytes(&head), text.len());
    }

    #[test]
    fn a_response_is_as_long_as_its_text() {
        let text = "HTTP/1.1 404 Not Found\r\nset-cookie: a\r\nset-cookie: bc\r\n\r\n";
        let response = Response::builder()
            .status(404)
            .header("set-cookie", "a")
            .header("set-cookie", "bc");
        let (head, ()) = response.body(()).expect("the head is valid").into_parts();
        assert_eq!(response_head_bytes(&head), text.len());
    }
}
