//! Why an origin gave no response: the status for the client, and the name in counters.

use std::time::Duration;

use http::{HeaderValue, StatusCode};
use spdy_client::error::{ConnectFailure, Error, TimeoutPhase};
use spdy_client::origin::Origin;
use spdy_rewrite::request::anonymize::Load;

use crate::request::proxy_request::ProxyRequest;
use crate::telemetry::counters::{CounterFamily, Counters};

/// Why there is no response.
#[derive(Clone, Debug, thiserror::Error)]
pub enum UpstreamError {
    /// It failed so often that no request is sent to it for now.
    #[error("{0} failed repeatedly: no request is sent to it for now")]
    Backoff(Origin),
    /// Too many long bodies are being sent to it, and one more got no permit in time.
    #[error("too many uploads to {0} (upstream.uploads)")]
    UploadQueueTimeout(Origin),
    /// Too many of its responses are in flight, and one more got no permit in time.
    #[error("too many fetches from {0} (limits.fetches)")]
    FetchLimitTimeout(Origin),
    /// Its response has a length and chunks, so that two readers may find different ends (RFC 9112 §6.3).
    #[error("response of {0} has both Content-Length and Transfer-Encoding")]
    ConflictingLength(Origin),
    /// Its response has a transfer coding that was not requested, and that would be removed without decoding (RFC 9112 §6.1).
    #[error("response of {0} has an unsupported transfer coding, expected chunked")]
    TransferCoding(Origin),
    /// It has not responded to a gRPC call, and nothing of the call's request came meanwhile.
    #[error("the call was silent in both directions for {0:?} (upstream.grpc_idle_timeout_s)")]
    CallIdle(Duration),
    /// Other requests for the same wait for it, and it has not responded within their timeout.
    #[error("the coalesced fetch timed out")]
    CoalesceTimeout,
    /// Its response to another request for the same shows that it is overloaded.
    #[error("the coalesced fetch failed with status {0}")]
    Overloaded(StatusCode),
    /// It could not be contacted, or did not respond.
    #[error(transparent)]
    Client(#[from] Error),
}

impl UpstreamError {
    /// The status for the client.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        match self {
            Self::CallIdle(_) | Self::CoalesceTimeout | Self::Client(Error::TimedOut { .. }) => {
                StatusCode::GATEWAY_TIMEOUT
            }
            Self::Client(error) if is_write_stalled(error) => StatusCode::GATEWAY_TIMEOUT,
            Self::Client(Error::NoBody { .. }) => StatusCode::REQUEST_TIMEOUT,
            Self::Backoff(_)
            | Self::UploadQueueTimeout(_)
            | Self::FetchLimitTimeout(_)
            | Self::Overloaded(_)
            | Self::Client(Error::Full { .. }) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Client(_) | Self::ConflictingLength(_) | Self::TransferCoding(_) => {
                StatusCode::BAD_GATEWAY
            }
        }
    }

    /// The configuration key of the proxy's own limit that was met; `None` if the origin caused the error.
    #[must_use]
    pub fn limit(&self) -> Option<&'static str> {
        match self {
            Self::UploadQueueTimeout(_) => Some("uploads"),
            Self::FetchLimitTimeout(_) => Some("limits.fetches"),
            Self::Client(Error::Full { .. }) => Some("queue"),
            Self::Backoff(_)
            | Self::ConflictingLength(_)
            | Self::TransferCoding(_)
            | Self::CallIdle(_)
            | Self::CoalesceTimeout
            | Self::Overloaded(_)
            | Self::Client(_) => None,
        }
    }

    /// Counts that the origin of `request` could not be contacted.
    pub(crate) fn count(&self, request: &ProxyRequest, counters: &Counters) {
        if let Some(limit) = self.limit() {
            counters.count(CounterFamily::Limits, limit);
            return;
        }
        counters.count(CounterFamily::Origins, self.name());
        let has_client_stopped = matches!(self, Self::Client(Error::NoBody { .. }));
        if request.proxied.is_none() && !has_client_stopped {
            request.site.counters.record_origin_error();
        }
    }

    /// Whether a client that loads a resource as `load` may be redirected to the resource's own host instead: a page loads it, and it is not
    /// certain to fare worse there.
    #[must_use]
    pub fn allows_redirect(&self, load: Load) -> bool {
        match self {
            // No request reached the host, so any method may be sent to it.
            Self::FetchLimitTimeout(_) => load.is_subresource,
            // The address rules deny the host: it must not be connected to.
            Self::Client(error) if error.is_denied() => false,
            // The host did respond, or the client stopped sending.
            Self::Overloaded(_) | Self::Client(Error::NoBody { .. }) => false,
            _ => load.allows_redirect(),
        }
    }

    /// Whether it was connected to, and sent no valid response.
    #[must_use]
    pub fn is_malformed_response(&self) -> bool {
        matches!(
            self,
            Self::ConflictingLength(_)
                | Self::TransferCoding(_)
                | Self::Client(Error::Exchange { .. })
        )
    }

    /// Whether the origin did respond, with a head above the size limit.
    #[must_use]
    pub fn is_head_too_large(&self) -> bool {
        matches!(self, Self::Client(error) if is_too_large(error))
    }

    /// The label of its counter.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Backoff(_) => "backoff",
            Self::UploadQueueTimeout(_) => "uploads",
            Self::FetchLimitTimeout(_) => "fetches",
            Self::Client(Error::Full { .. }) => "queue",
            Self::Overloaded(_) => "overloaded",
            Self::Client(Error::Resolve { .. }) => "dns-error",
            Self::Client(Error::Connect { .. }) => "connect-error",
            Self::CallIdle(_) | Self::CoalesceTimeout | Self::Client(Error::TimedOut { .. }) => {
                "timeout"
            }
            Self::Client(Error::NoBody { .. }) => "client-aborted",
            Self::Client(error) if is_write_stalled(error) => "timeout",
            Self::Client(_) | Self::ConflictingLength(_) | Self::TransferCoding(_) => {
                "invalid-response"
            }
        }
    }

    /// The same for `Proxy-Status` (RFC 9209 §2.3), without addresses.
    #[must_use]
    pub fn proxy_status(&self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Backoff(_) | Self::Overloaded(_) => "spdy; error=destination_unavailable",
            Self::UploadQueueTimeout(_)
            | Self::FetchLimitTimeout(_)
            | Self::Client(Error::Full { .. }) => "spdy; error=connection_limit_reached",
            Self::ConflictingLength(_) => "spdy; error=http_protocol_error",
            Self::TransferCoding(_) => "spdy; error=http_response_transfer_coding",
            Self::Client(Error::Resolve { .. }) => "spdy; error=dns_error",
            Self::Client(Error::Connect { failure, .. }) => match failure {
                ConnectFailure::Certificate => "spdy; error=tls_certificate_error",
                failure if failure.is_above_tcp() => "spdy; error=tls_protocol_error",
                _ => "spdy; error=connection_refused",
            },
            Self::Client(Error::TimedOut {
                phase: TimeoutPhase::Connection,
                ..
            }) => "spdy; error=connection_timeout",
            Self::CallIdle(_) | Self::CoalesceTimeout | Self::Client(Error::TimedOut { .. }) => {
                "spdy; error=http_response_timeout"
            }
            Self::Client(Error::NoBody { .. }) => "spdy; error=http_request_error",
            Self::Client(error) if is_write_stalled(error) => {
                "spdy; error=connection_write_timeout"
            }
            Self::Client(error) if is_too_large(error) => {
                "spdy; error=http_response_header_section_size"
            }
            Self::Client(Error::Exchange { .. }) => "spdy; error=http_response_incomplete",
            Self::Client(_) => "spdy; error=proxy_internal_error",
        })
    }
}

/// Whether a request was aborted because the origin did not read it.
pub(crate) fn is_write_stalled(error: &Error) -> bool {
    matches!(error, Error::Exchange { source, .. } if source.write_timed_out)
}

/// Whether the head of an origin's response is above the size limit.
fn is_too_large(error: &Error) -> bool {
    matches!(error, Error::Exchange { source, .. } if source.too_large)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_status_distinguishes_tcp_tls_and_certificate() {
        for (failure, expected) in [
            (ConnectFailure::Denied, "connection_refused"),
            (ConnectFailure::Unreachable, "connection_refused"),
            (ConnectFailure::Tls, "tls_protocol_error"),
            (ConnectFailure::Certificate, "tls_certificate_error"),
            (ConnectFailure::Protocol, "tls_protocol_error"),
        ] {
            // The text does not matter: only the type decides.
            let error = UpstreamError::Client(Error::Connect {
                origin: Origin::of(&"https://origin.test/".parse().unwrap()).expect("an origin"),
                failure,
                reason: "invalid peer certificate, no connection".to_owned(),
            });
            assert_eq!(error.proxy_status(), format!("spdy; error={expected}"));
        }
    }
}
