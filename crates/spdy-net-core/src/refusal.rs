//! The answer of a connection to an invalid request, before the handler is called, and the report of it to the handler.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use spdy::body::Body;
use spdy_http::request::BadRequest;

use crate::protocol::Protocol;

/// A request that the connection answered by itself.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// Spoken on the connection.
    pub protocol: Protocol,
    /// The method, if it could be read.
    pub method: Option<&'a Method>,
    /// The target as it came, if it could be read.
    pub uri: Option<&'a Uri>,
    /// The header fields, if they could be read.
    pub headers: Option<&'a HeaderMap>,
    /// Bytes of the answer's body.
    pub body_bytes: u64,
    /// What is wrong with it.
    pub flaw: Flaw,
}

/// Why a request is none.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Flaw {
    /// It cannot be read, or lacks what every request has.
    Malformed,
    /// It names no host, or several (HTTP/1.1).
    Host,
    /// Its body has a transfer coding that is not chunked alone (HTTP/1.1).
    TransferCoding,
    /// Its head is larger than may be.
    HeadTooLarge,
}

impl Refusal<'_> {
    /// A request that could not be read, answered without a body.
    pub fn unread(protocol: Protocol, flaw: Flaw) -> Self {
        Self {
            protocol,
            method: None,
            uri: None,
            headers: None,
            body_bytes: 0,
            flaw,
        }
    }
}

impl Flaw {
    /// Its name, which stays as it is.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Host => "host",
            Self::TransferCoding => "transfer-coding",
            Self::HeadTooLarge => "head-too-large",
        }
    }

    /// What is answered.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Malformed | Self::Host => StatusCode::BAD_REQUEST,
            Self::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    /// That for which a request over SPDY was answered, if it was.
    pub fn of_spdy(error: &BadRequest) -> Option<Self> {
        match error {
            BadRequest::Stream { .. } => None, // it was reset
            _ if error.status() == Self::HeadTooLarge.status() => Some(Self::HeadTooLarge),
            _ => Some(Self::Malformed),
        }
    }

    /// A response with `reason` as its body.
    pub fn answer(self, reason: impl Into<Cow<'static, str>>) -> Response<Body> {
        let reason = reason.into();
        let has_text = !reason.is_empty();
        let mut response = Response::new(Body::full(reason.into_owned()));
        *response.status_mut() = self.status();
        if has_text {
            let kind = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
        }
        response
    }
}
