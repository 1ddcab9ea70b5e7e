//! The plan of a run: number, duration and rate of requests, and the expected responses.

use std::time::Duration;

use spdy_frame::compress::Compression;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ClientTls;

use crate::target::Target;

/// Duration of the measurement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Length {
    /// This long; responses that end in this time are counted.
    Time(Duration),
    /// This many requests; those that start after the warm-up are counted.
    Requests(u64),
}

/// The expected response.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Expect {
    /// The status; `None` accepts every 2xx and 3xx.
    pub status: Option<u16>,
    /// Bytes of the body.
    pub body_bytes: Option<u64>,
}

impl Expect {
    /// True if the response has the expected status.
    #[must_use]
    pub fn is_status(&self, status: u16) -> bool {
        self.status
            .map_or((200..400).contains(&status), |expected| status == expected)
    }

    /// True if the body has the expected length.
    #[must_use]
    pub fn is_length(&self, body_bytes: u64) -> bool {
        self.body_bytes
            .is_none_or(|expected| body_bytes == expected)
    }
}

/// A whole run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The requests and their origin.
    pub target: Target,
    /// The protocol; `None` uses ALPN, and HTTP/1.1 without TLS.
    pub protocol: Option<Protocol>,
    /// Used if the target is https.
    pub tls: ClientTls,
    /// Number of connections, at least 1.
    pub sessions: usize,
    /// Requests in flight on each; `None` is 100, and 1 for HTTP/1.1. More than 1 there is pipelining.
    pub streams: Option<usize>,
    /// Duration of the measurement.
    pub length: Length,
    /// Duration of the load before that, which is not counted.
    pub warm_up: Duration,
    /// Requests started per second, over all sessions; `None` is the closed loop.
    pub rate: Option<f64>,
    /// Threads, each with its share of the sessions.
    pub threads: usize,
    /// Timeout of a response, from sending its request.
    pub timeout: Duration,
    /// Timeout of a connection, including TLS.
    pub connect_timeout: Duration,
    /// The expected response.
    pub expect: Expect,
    /// Receive window of a stream, bytes (SPDY/3 and later, HTTP/2).
    pub stream_window_bytes: u32,
    /// Receive window of a session, bytes (SPDY/3.1, HTTP/2).
    pub session_window_bytes: u32,
    /// Compression of SPDY's header blocks.
    pub compression: Compression,
    /// Window of that compression, as a power of two from 11 to 15; `None` for its default.
    pub compression_window_bits: Option<u8>,
}

impl Plan {
    /// Requests in flight on a session of `protocol`.
    #[must_use]
    pub fn streams_of(&self, protocol: Protocol) -> usize {
        let default = if protocol.is_multiplexed() { 100 } else { 1 };
        self.streams.unwrap_or(default).max(1)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use http::{HeaderMap, Method};
    use spdy_net::tls::TlsOptions;
    use spdy_net::tls::verify::Trust;

    use super::*;

    /// One request at a time for `url`.
    pub(crate) fn plan(url: &str) -> Plan {
        let urls = [url.parse().expect("the URL is valid")];
        let target = Target::new(&urls, &Method::GET, &HeaderMap::new(), bytes::Bytes::new());
        let trust = Trust {
            insecure: true,
            ..Trust::default()
        };
        Plan {
            target: target.expect("the target is valid"),
            protocol: None,
            tls: ClientTls::new(&trust, &TlsOptions::default()).expect("the TLS options are valid"),
            sessions: 1,
            streams: None,
            length: Length::Requests(1),
            warm_up: Duration::ZERO,
            rate: None,
            threads: 1,
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            expect: Expect::default(),
            stream_window_bytes: 1 << 20,
            session_window_bytes: 1 << 20,
            compression: Compression::CrimeSafe,
            compression_window_bits: None,
        }
    }

    #[test]
    fn a_response_is_right_by_class_or_expectation() {
        let any = Expect::default();
        let right: Vec<u16> = (100..600).filter(|status| any.is_status(*status)).collect();
        assert_eq!(right, (200..400).collect::<Vec<_>>());
        assert!(any.is_length(0) && any.is_length(7));
        let one = Expect {
            status: Some(404),
            body_bytes: Some(7),
        };
        assert!(one.is_status(404) && !one.is_status(200));
        assert!(one.is_length(7) && !one.is_length(8));
    }
}
