//! Converts errors of h2 to errors of a connection.

use spdy_net_core::error::ConnectionError;

/// The error of a connection that ended with `error`.
///
/// h2 itself ends a connection with ENHANCE_YOUR_CALM only when the peer exceeds one of its limits.
pub(crate) fn connection_error(error: h2::Error) -> ConnectionError {
    ConnectionError::Http2 {
        abuse: error.is_library() && error.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM),
        source: error.into(),
    }
}
