//! Heads, and header blocks as text.

use http::{Method, Request, Response, request, response};
use spdy_frame::header_block::HeaderBlock;

pub(crate) fn head(
    method: Method,
    uri: &str,
    headers: &[(&'static str, &'static str)],
) -> request::Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).expect("a valid request").into_parts().0
}

pub(crate) fn block(pairs: &[(&'static str, &'static str)]) -> HeaderBlock {
    pairs.iter().copied().collect()
}

pub(crate) fn text(block: &HeaderBlock) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    block
        .iter()
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}

pub(crate) fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

pub(crate) const GET: [(&str, &str); 5] = [
    (":method", "GET"),
    (":path", "/a?b"),
    (":version", "HTTP/1.1"),
    (":host", "example.org"),
    (":scheme", "https"),
];

/// [`GET`] with one pair changed, or left out.
pub(crate) fn changed(name: &str, value: Option<&'static str>) -> HeaderBlock {
    let pairs = GET.into_iter().filter_map(|(own, old)| {
        if own == name {
            Some((own, value?))
        } else {
            Some((own, old))
        }
    });
    pairs.collect()
}

pub(crate) fn response(status: u16, headers: &[(&'static str, &'static str)]) -> response::Parts {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(()).expect("a valid response").into_parts().0
}
