//! What is asked: how many, how long, how fast, and what counts as right.

use std::time::Duration;

use spdy_frame::compress::Compression;
use spdy_net::protocol::Protocol;
use spdy_net::tls::ClientTls;

use crate::target::Target;

/// How long a run measures.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Length {
    /// For so long; answers that end in this time are counted.
    Time(Duration),
    /// So many requests; those begun after the warm-up are counted.
    Requests(u64),
}

/// What makes an answer right.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Expect {
    /// The status; `None` takes every 2xx and 3xx.
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
    /// What is asked for, and where.
    pub target: Target,
    /// What is spoken; `None` lets ALPN choose, and is HTTP/1.1 without TLS.
    pub protocol: Option<Protocol>,
    /// Used if the target is https.
    pub tls: ClientTls,
    /// Connections, 1 at least.
    pub sessions: usize,
    /// Requests in flight on each; `None` is 100, in HTTP/1.1 1. More than 1 there is pipelining.
    pub streams: Option<usize>,
    /// How long to measure.
    pub length: Length,
    /// Load before that, which is not counted.
    pub warm_up: Duration,
    /// Requests begun per second, over all sessions; `None` is the closed loop.
    pub rate: Option<f64>,
    /// Threads, each with its share of the sessions.
    pub threads: usize,
    /// For an answer, from the moment its request is sent.
    pub timeout: Duration,
    /// For a connection, TLS included.
    pub connect_timeout: Duration,
    /// What is right.
    pub expect: Expect,
    /// Receive window of a stream, bytes (SPDY/3 and later, HTTP/2).
    pub stream_window_bytes: u32,
    /// Receive window of a session, bytes (SPDY/3.1, HTTP/2).
    pub session_window_bytes: u32,
    /// How SPDY's header blocks are compressed.
    pub compression: Compression,
    /// How far back their compression looks, as a power of two from 11 to 15; `None` for its default.
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
