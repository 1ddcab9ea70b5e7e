//! The request of `spdy fetch` for one URL, and the destination of its response body.

use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use spdy::body::Body;

/// The destination of a body.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
    /// A new file; an existing file is not overwritten.
    NewFile(PathBuf),
    Discard,
}

/// A URL to fetch, with its options.
#[derive(Clone, Debug)]
pub(crate) struct FetchRequest {
    pub(crate) url: Uri,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Largest number of redirects.
    pub(crate) redirects: usize,
    /// Print the response head as part of the result.
    pub(crate) print_head: bool,
    pub(crate) destination: Destination,
}

impl FetchRequest {
    /// The request to send.
    pub(crate) fn request(&self) -> Request<Body> {
        let mut request = Request::new(Body::full(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }
}
