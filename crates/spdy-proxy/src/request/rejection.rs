//! Why a request is not passed on, and the response to it.

use http::{Method, StatusCode};
use spdy_rewrite::rules::refusal::Refusal;

use crate::request::websocket_handshake::HandshakeError;

/// Why a request is not passed on.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RequestRejection {
    /// A rule about moved resources.
    #[error(transparent)]
    Rule(#[from] Refusal),
    /// The same, of what the page may load from its host: it is sent there.
    #[error("{why}, so it is sent to {to}")]
    Redirect {
        /// The rule.
        why: Refusal,
        /// The URL of the resource at its own host.
        to: String,
    },
    /// It passed here before.
    #[error("the request came back to where it had passed")]
    Loop,
    /// Its target makes no URI, or no key.
    #[error("the target {0:?} cannot be asked for")]
    Target(String),
    /// CONNECT and TRACE end here.
    #[error("method {0}")]
    Method(Method),
    /// A WebSocket would begin with it (RFC 6455 §4.1), and the site lets none through. Its origin would only see a GET, and answer
    /// with a page.
    #[error("no WebSocket goes through to this site (websocket = false)")]
    WebSocket,
    /// It requests a WebSocket, and is no valid handshake.
    #[error(transparent)]
    Handshake(#[from] HandshakeError),
}

impl RequestRejection {
    /// The status for the client.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Rule(refusal) => refusal.status(),
            Self::Redirect { .. } => StatusCode::TEMPORARY_REDIRECT,
            Self::Loop => StatusCode::LOOP_DETECTED,
            Self::Handshake(HandshakeError::Version) => StatusCode::UPGRADE_REQUIRED,
            Self::Target(_) | Self::Handshake(_) => StatusCode::BAD_REQUEST,
            Self::Method(_) | Self::WebSocket => StatusCode::NOT_IMPLEMENTED,
        }
    }

    /// The text for the client. It is empty for rules about moved resources, so that clients cannot probe them.
    #[must_use]
    pub fn message(&self) -> &'static str {
        match self {
            Self::Rule(_) | Self::Redirect { .. } => "",
            Self::Loop => "the request came back to where it had passed\n",
            Self::Target(_) => "want a target that begins with / and makes a URL\n",
            Self::Method(_) => "CONNECT and TRACE go no further than here\n",
            Self::WebSocket => "no WebSocket goes through to this site\n",
            Self::Handshake(_) => "want a handshake of RFC 6455 for a WebSocket\n",
        }
    }

    /// The label of its counter.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Rule(refusal) | Self::Redirect { why: refusal, .. } => refusal.name(),
            Self::Loop => "loop",
            Self::Target(_) => "target",
            Self::Method(_) => "method",
            Self::WebSocket => "websocket",
            Self::Handshake(_) => "handshake",
        }
    }
}
