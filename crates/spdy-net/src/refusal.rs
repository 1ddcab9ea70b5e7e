//! What a server says itself, before anyone is asked, of a request that is none.

use std::borrow::Cow;

use http::{HeaderValue, Response, StatusCode, header};
use spdy::body::Body;

/// An answer that says `why`.
pub(crate) fn refusal(status: StatusCode, why: impl Into<Cow<'static, str>>) -> Response<Body> {
    let why = why.into();
    let has_text = !why.is_empty();
    let mut response = Response::new(Body::full(why.into_owned()));
    *response.status_mut() = status;
    if has_text {
        let kind = HeaderValue::from_static("text/plain; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, kind);
    }
    response
}
