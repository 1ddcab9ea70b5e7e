//! What `spdy fetch` asks for one URL, and where its body goes.

use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Uri};
use spdy::body::Body;

/// Where a body goes.
#[derive(Clone, Debug)]
pub(crate) enum Destination {
    Stdout,
    File(PathBuf),
    /// As a file; one that is there stays as it is.
    NewFile(PathBuf),
    Nowhere,
}

/// What is to be fetched, and how.
#[derive(Clone, Debug)]
pub(crate) struct FetchRequest {
    pub(crate) url: Uri,
    pub(crate) method: Method,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Redirects that may be followed.
    pub(crate) redirects: usize,
    /// The head of the response is a result too.
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
