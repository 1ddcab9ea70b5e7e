//! The reason why an upgrade is refused, and the response that states it.

use http::header::{self, HeaderValue};
use http::{Response, StatusCode};

use crate::upgrade::switch::ACCEPTED_STREAM_PROTOCOL_VERSIONS;

/// The reason of a refusal, as a response.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    pub(super) status: StatusCode,
    pub(super) message: String,
    pub(super) accepted: Vec<HeaderValue>,
}

impl Refusal {
    /// A refusal by the caller: an unknown path, or a token that was already used.
    #[must_use]
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
            accepted: Vec::new(),
        }
    }

    /// 400: no upgrade to SPDY/3.1; 403: no common sub-protocol; or the status chosen by the caller.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// The message for the client.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The response: plain text, and for 403 the accepted sub-protocols, one header line each.
    #[must_use]
    pub fn response(&self) -> Response<String> {
        let mut response = Response::new(format!("{}\n", self.message));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(header::CONTENT_TYPE, text);
        // our message repeats the client's header, so no browser may interpret it as a page
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            // 405 must list the allowed methods (RFC 9110 §15.5.6)
            headers.insert(header::ALLOW, HeaderValue::from_static("GET, POST"));
        }
        for protocol in &self.accepted {
            headers.append(ACCEPTED_STREAM_PROTOCOL_VERSIONS, protocol.clone());
        }
        response
    }
}
