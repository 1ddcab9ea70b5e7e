//! Errors of h2 as errors of a connection.

use spdy_net_core::error::ConnectionError;

/// The error of a connection that ended by `error`.
///
/// h2 ends a connection with ENHANCE_YOUR_CALM by itself only when the peer went past one of its limits.
pub(crate) fn connection_error(error: h2::Error) -> ConnectionError {
    ConnectionError::Http2 {
        abuse: error.is_library() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM),
        source: error.into(),
    }
}
