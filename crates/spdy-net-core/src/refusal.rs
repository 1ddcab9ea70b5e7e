//! The response of a connection to an invalid request, before the handler is called, and the report of it to the handler.

use std::borrow::Cow;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use spdy::body::Body;
use spdy_http::request::BadRequest;

use crate::protocol::Protocol;

/// An invalid request that the connection answered itself.
#[derive(Clone, Copy, Debug)]
pub struct Refusal<'a> {
    /// The protocol of the connection.
    pub protocol: Protocol,
    /// The method, if it could be read.
    pub method: Option<&'a Method>,
    /// The target, unchanged, if it could be parsed.
    pub uri: Option<&'a Uri>,
    /// The header fields, if they could be read.
    pub headers: Option<&'a HeaderMap>,
    /// Length of the response's body, bytes.
    pub body_bytes: u64,
    /// The flaw of the request.
    pub flaw: Flaw,
}

/// Why a request is invalid.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Flaw {
    /// It cannot be parsed, or a required part is missing.
    Malformed,
    /// It has no host, or several (HTTP/1.1).
    Host,
    /// Its body has a transfer coding other than only chunked (HTTP/1.1).
    TransferCoding,
    /// Its head exceeds the limit.
    HeadTooLarge,
}

impl Refusal<'_> {
    /// A request that could not be parsed, answered without a body.
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
    /// The name. Names are stable.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Host => "host",
            Self::TransferCoding => "transfer-coding",
            Self::HeadTooLarge => "head-too-large",
        }
    }

    /// The status of the response.
    #[must_use]
    pub const fn status(self) -> StatusCode {
        match self {
            Self::Malformed | Self::Host => StatusCode::BAD_REQUEST,
            Self::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Self::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        }
    }

    /// The flaw of a request over SPDY that was answered; `None` if it was not answered.
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
