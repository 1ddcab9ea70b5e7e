//! Why a request is not passed on, and the response to it.

use http::{Method, StatusCode};
use spdy_rewrite::rules::refusal::Refusal;

use crate::request::websocket_handshake::HandshakeError;
use crate::sites::path_rules::AccessDenial;

/// Why a request is not passed on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestRejection {
    /// A rule about proxied resources.
    #[error(transparent)]
    Rule(#[from] Refusal),
    /// A rule about proxied resources, but the page may load the resource from its host: the client is redirected.
    #[error("{reason}: redirected to {to}")]
    Redirect {
        /// The rule.
        reason: Refusal,
        /// The URL of the resource at its own host.
        to: String,
    },
    /// It passed this proxy before.
    #[error("request loop: the request passed this proxy before")]
    Loop,
    /// Its target is not a valid URI or key.
    #[error("invalid request target {0:?}")]
    Target(String),
    /// CONNECT and TRACE are not supported.
    #[error("method {0} is not supported")]
    Method(Method),
    /// It requests a WebSocket (RFC 6455 §4.1), and the site does not allow them. Its origin would get a GET, and respond with a page.
    #[error("the site does not allow WebSockets (websocket = false)")]
    WebSocket,
    /// It requests a WebSocket, and is no valid handshake.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
    /// The site is served over TLS only: the client is redirected.
    #[error("the site is served over TLS only: redirected to {to}")]
    Insecure {
        /// The URL over TLS.
        to: String,
    },
    /// The client's address may not request the path (`site.paths`).
    #[error("the client's address may not request this path")]
    Address,
    /// The client needs a password (`site.paths.basic_auth`), and sent none, or a wrong one.
    #[error("the client sent no password, or a wrong one")]
    Credentials {
        /// The name for the client's user.
        realm: String,
    },
    /// The client makes too many requests for the path (`site.paths`).
    #[error("the client makes too many requests for this path")]
    Rate,
    /// Too many passwords of all clients wait to be verified, or this one has waited too long.
    #[error("too many passwords wait to be verified")]
    PasswordsBusy,
}

impl From<AccessDenial> for RequestRejection {
    fn from(denial: AccessDenial) -> Self {
        match denial {
            AccessDenial::Address => Self::Address,
            AccessDenial::Rate => Self::Rate,
        }
    }
}

impl RequestRejection {
    /// The status for the client.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Rule(refusal) => refusal.status(),
            Self::Redirect { .. } => StatusCode::TEMPORARY_REDIRECT,
            Self::Insecure { .. } => StatusCode::PERMANENT_REDIRECT,
            Self::Address => StatusCode::FORBIDDEN,
            Self::Credentials { .. } => StatusCode::UNAUTHORIZED,
            Self::Rate => StatusCode::TOO_MANY_REQUESTS,
            Self::PasswordsBusy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::Handshake(HandshakeError::Version) => StatusCode::UPGRADE_REQUIRED,
            Self::Target(_) | Self::Handshake(_) => StatusCode::BAD_REQUEST,
            Self::Method(_) | Self::WebSocket => StatusCode::NOT_IMPLEMENTED,
        }
    }

    /// The text for the client. It is empty for rules about proxied resources, so that clients cannot probe them.
    #[must_use]
    pub fn message(&self) -> &'static str {
        match self {
            Self::Rule(_) | Self::Redirect { .. } | Self::Insecure { .. } => "",
            Self::Address => "this address may not request this path\n",
            Self::Credentials { .. } => "this path needs a user name and a password\n",
            Self::Rate => "too many requests: try again later\n",
            Self::PasswordsBusy => "too many passwords wait to be verified: try again later\n",
            Self::Loop => "request loop: the request passed this proxy before\n",
            Self::Target(_) => "invalid request target: expected a path that begins with /\n",
            Self::Method(_) => "the methods CONNECT and TRACE are not supported\n",
            Self::WebSocket => "this site does not allow WebSockets\n",
            Self::Handshake(_) => "invalid WebSocket handshake: expected one of RFC 6455\n",
        }
    }

    /// The label of its counter.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rule(refusal)
            | Self::Redirect {
                reason: refusal, ..
            } => refusal.name(),
            Self::Insecure { .. } => "insecure",
            Self::Address => "address",
            Self::Credentials { .. } => "credentials",
            Self::Rate => "rate",
            Self::PasswordsBusy => "passwords_busy",
            Self::Loop => "loop",
            Self::Target(_) => "target",
            Self::Method(_) => "method",
            Self::WebSocket => "websocket",
            Self::Handshake(_) => "handshake",
        }
    }
}
