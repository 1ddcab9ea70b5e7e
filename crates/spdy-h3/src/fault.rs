//! Errors of a stream or of a whole connection, by their scope.

use quinn::{ConnectionError as Lost, ReadError, VarInt, WriteError};
use spdy_net_core::error::{ConnectionError, ExchangeError, Retry};

use crate::code::Code;

/// An error.
#[derive(Clone, Debug)]
pub(crate) enum Fault {
    /// The peer violated a rule whose violation ends the connection (RFC 9114 §8).
    Connection(Code, String),
    /// The peer violated a rule whose violation ends one exchange.
    Stream(Code, String),
    /// The peer ended the stream with this code, by RESET_STREAM or STOP_SENDING.
    Ended(Code),
    /// The connection was lost, or was closed by one side.
    Lost(Lost),
    /// A timeout.
    Slow(String),
    /// The server rejected early data: the stream does not exist any more.
    EarlyDataRejected,
}

impl Fault {
    /// The error code for the stream on this side.
    pub(crate) fn code(&self) -> Code {
        match self {
            Self::Connection(code, _) | Self::Stream(code, _) => *code,
            Self::Ended(_) | Self::Lost(_) | Self::Slow(_) | Self::EarlyDataRejected => {
                Code::REQUEST_CANCELLED
            }
        }
    }

    /// Converts it to the error of a request on a stream that the peer will process, or will not (`above_goaway`).
    pub(crate) fn to_exchange_error(&self, above_goaway: bool) -> ExchangeError {
        let retry = match self {
            _ if above_goaway => Retry::Always,
            Self::Ended(Code::REQUEST_REJECTED) | Self::EarlyDataRejected => Retry::Always,
            Self::Ended(Code::REQUEST_CANCELLED | Code::INTERNAL_ERROR) => Retry::IfIdempotent,
            Self::Lost(_) => Retry::IfIdempotent,
            Self::Slow(_) => return ExchangeError::write_timed_out(format!("h3: {self}")),
            Self::Connection(..) | Self::Stream(..) | Self::Ended(_) => Retry::Never,
        };
        ExchangeError::new(retry, format!("h3: {self}"))
    }

    /// Converts it to the error of the connection.
    pub(crate) fn to_connection_error(&self) -> ConnectionError {
        let abuse = matches!(self, Self::Connection(Code::EXCESSIVE_LOAD, _));
        ConnectionError::Http3 {
            reason: self.to_string(),
            abuse,
        }
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connection(code, reason) | Self::Stream(code, reason) => {
                write!(f, "{reason} ({code})")
            }
            Self::Ended(code) => write!(f, "the peer ended the stream with {code}"),
            Self::Lost(Lost::ApplicationClosed(close)) => {
                let code = Code::of(close.error_code);
                let reason = String::from_utf8_lossy(&close.reason);
                match reason.is_empty() {
                    true => write!(f, "the peer closed the connection with {code}"),
                    false => write!(f, "the peer closed the connection with {code}: {reason}"),
                }
            }
            Self::Lost(Lost::LocallyClosed) => f.write_str("the connection was closed locally"),
            Self::Lost(lost) => write!(f, "QUIC: {lost}"),
            Self::Slow(reason) => f.write_str(reason),
            Self::EarlyDataRejected => f.write_str("the server rejected early data"),
        }
    }
}

impl std::error::Error for Fault {}

impl From<Lost> for Fault {
    fn from(lost: Lost) -> Self {
        Self::Lost(lost)
    }
}

impl From<ReadError> for Fault {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(code) => Self::Ended(Code::of(code)),
            ReadError::ConnectionLost(lost) => Self::Lost(lost),
            ReadError::ZeroRttRejected => Self::EarlyDataRejected,
            // These do not occur: no finished stream is read.
            ReadError::ClosedStream | ReadError::IllegalOrderedRead => {
                panic!("reading from an HTTP/3 stream failed: {error}")
            }
        }
    }
}

impl From<WriteError> for Fault {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(code) => Self::Ended(Code::of(code)),
            WriteError::ConnectionLost(lost) => Self::Lost(lost),
            WriteError::ZeroRttRejected => Self::EarlyDataRejected,
            WriteError::ClosedStream => panic!("writing to an HTTP/3 stream failed: {error}"),
        }
    }
}

/// True if a connection ended normally: closed without an error, or timed out with a silent peer.
pub(crate) fn is_graceful(lost: &Lost) -> bool {
    match lost {
        // Some peers close QUIC itself, with its code zero, to signal no error.
        Lost::ApplicationClosed(close) => {
            close.error_code == VarInt::from_u32(0) || Code::of(close.error_code) == Code::NO_ERROR
        }
        Lost::TimedOut | Lost::LocallyClosed => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9114 §4.1.1. Regression: a stream that the client had cancelled was reset with H3_INTERNAL_ERROR.
    #[test]
    fn a_stream_that_either_side_gave_up_is_reset_with_request_cancelled() {
        for fault in [
            Fault::Ended(Code::REQUEST_CANCELLED),
            Fault::Ended(Code::NO_ERROR),
            Fault::Lost(Lost::TimedOut),
            Fault::Slow(String::new()),
        ] {
            assert_eq!(fault.code(), Code::REQUEST_CANCELLED, "{fault}");
        }
        let own = Fault::Stream(Code::INTERNAL_ERROR, "body failed".to_owned());
        assert_eq!(own.code(), Code::INTERNAL_ERROR);
    }
}
