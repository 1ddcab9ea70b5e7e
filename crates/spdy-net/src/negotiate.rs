//! Detects the protocol of a connection, by ALPN or by its first bytes.
//!
//! ```text
//! first bytes                      protocol
//! 80 02 ..                         SPDY/2
//! 80 03 ..                         SPDY/3 or 3.1: the bytes do not differ (SPDY/3.1 §2.2.1); see below
//! "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"   HTTP/2 by prior knowledge (RFC 9113 §3.3)
//! 16 03 ..                         TLS, on a port that has none
//! anything else                    HTTP/1.1
//! ```
//!
//! If only one of SPDY/3 and 3.1 is enabled here, that one is used. If both are, the session begins as SPDY/3 but obeys the session
//! window of 3.1 until the client has shown its version. It switches to 3.1 at the first WINDOW_UPDATE for stream 0, which no
//! SPDY/3 client sends (`spdy-session/src/session/detect_version.rs`).

use std::time::Duration;

use bytes::BytesMut;
use futures_util::FutureExt;
use futures_util::future::{Either, select};
use spdy::runtime::SharedRuntime;
use spdy::upgrade::Rewind;
use spdy_frame::version::Version;
use spdy_net_core::error::ConnectionError;
use spdy_net_core::network::BoxIo;
use spdy_net_core::protocol::Protocol;
use tokio::io::AsyncReadExt;

/// The first bytes of an HTTP/2 client (RFC 9113 §3.4).
pub(crate) const H2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The protocol that the bytes so far show.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Detection {
    /// Several protocols are still possible.
    Incomplete,
    /// SPDY with this version number on the wire.
    Spdy(u16),
    Http2,
    Http1,
    /// A ClientHello on a port without TLS.
    Tls,
    /// SPDY's control bit with an undefined version.
    UnknownSpdy(u16),
}

fn detect(bytes: &[u8]) -> Detection {
    match bytes {
        [] => Detection::Incomplete,
        [first, ..] if first & 0x80 != 0 => match bytes {
            [high, low, ..] => match u16::from_be_bytes([high & 0x7f, *low]) {
                wire @ (2 | 3) => Detection::Spdy(wire),
                other => Detection::UnknownSpdy(other),
            },
            _ => Detection::Incomplete,
        },
        [0x16, 0x03, ..] => Detection::Tls,
        [0x16] => Detection::Incomplete,
        _ if bytes.starts_with(H2_PREFACE) => Detection::Http2,
        _ if H2_PREFACE.starts_with(bytes) => Detection::Incomplete,
        _ => Detection::Http1,
    }
}

/// The first of `protocols` that matches the bytes; SPDY/3 before 3.1, because it can still switch.
fn choose(verdict: Detection, protocols: &[Protocol]) -> Result<Protocol, ConnectionError> {
    let fits = |protocol: &&Protocol| match (verdict, protocol) {
        (Detection::Spdy(wire), Protocol::Spdy(version)) => version.wire() == wire,
        (Detection::Http2, Protocol::Http2) | (Detection::Http1, Protocol::Http1) => true,
        _ => false,
    };
    let found = match verdict {
        Detection::Spdy(2) => "SPDY/2",
        Detection::Spdy(_) => "SPDY/3 or SPDY/3.1",
        Detection::Http2 => "HTTP/2",
        Detection::Tls => "TLS",
        Detection::UnknownSpdy(_) => "an unknown version of SPDY",
        Detection::Http1 | Detection::Incomplete => "HTTP/1.1",
    };
    let v3 = Protocol::Spdy(Version::V3);
    if verdict == Detection::Spdy(3) && protocols.contains(&v3) {
        return Ok(v3);
    }
    protocols
        .iter()
        .find(fits)
        .copied()
        .ok_or_else(|| ConnectionError::UnsupportedProtocol {
            found,
            expected: protocols.to_vec(),
        })
}

/// Reads only as many bytes as needed to detect the client's protocol. Returns the connection with all its bytes.
///
/// # Errors
///
/// No bytes for `patience`, the end of the connection, or a protocol that is not in `protocols`.
pub async fn sniff(
    mut io: BoxIo,
    protocols: &[Protocol],
    patience: Duration,
    runtime: &SharedRuntime,
) -> Result<(BoxIo, Protocol), ConnectionError> {
    let mut seen = BytesMut::with_capacity(H2_PREFACE.len());
    let mut deadline = runtime.sleep_until(runtime.now() + patience);
    let verdict = loop {
        match detect(&seen) {
            Detection::Incomplete => {}
            verdict => break verdict,
        }
        // Never past the preface: the protocol's own reader needs the bytes that follow.
        let mut rest = [0; H2_PREFACE.len()];
        let missing = H2_PREFACE.len() - seen.len();
        let read = std::pin::pin!(io.read(&mut rest[..missing]));
        match select(read, &mut deadline).await {
            Either::Left((Ok(0), _)) if seen.is_empty() => return Err(ConnectionError::NoBytes),
            // A client that sent "P" and closed spoke invalid HTTP/1.1; its parser reports that best.
            Either::Left((Ok(0), _)) => break Detection::Http1,
            Either::Left((Ok(len), _)) => seen.extend_from_slice(&rest[..len]),
            Either::Left((Err(error), _)) => return Err(ConnectionError::Io(error)),
            Either::Right(((), _)) => {
                return Err(ConnectionError::TimedOut {
                    what: "first bytes",
                    after: patience,
                });
            }
        }
    };
    match choose(verdict, protocols) {
        Ok(protocol) => Ok((Box::new(Rewind::new(seen.freeze(), io)), protocol)),
        Err(error) => {
            drain_available(&mut io);
            Err(error)
        }
    }
}

/// Reads the bytes that have already arrived, up to a page. TCP ends a connection with a reset if there are unread bytes, and a
/// reset would look like a network failure.
fn drain_available(io: &mut BoxIo) {
    let mut rest = [0; 4096];
    let _ = io.read(&mut rest).now_or_never();
}

/// The protocol of a client's TLS connection. `chosen` is what the server selected by ALPN, `offered` what the client offered.
///
/// A server that selects nothing speaks HTTP/1.1: it does not know ALPN, and SPDY and HTTP/2 over TLS require it (RFC 9113 §3.2).
/// If they were sent anyway, the server would close the connection without a reason.
///
/// # Errors
///
/// The server selected nothing, and HTTP/1.1 was not offered.
pub fn client(chosen: Option<Protocol>, offered: &[Protocol]) -> Result<Protocol, ConnectionError> {
    match chosen {
        Some(protocol) if offered.contains(&protocol) => Ok(protocol),
        None if offered.contains(&Protocol::Http1) => Ok(Protocol::Http1),
        _ => Err(ConnectionError::NoProtocolSelected {
            offered: offered.to_vec(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Protocol; 5] = [
        Protocol::Spdy(Version::V31),
        Protocol::Spdy(Version::V3),
        Protocol::Spdy(Version::V2),
        Protocol::Http2,
        Protocol::Http1,
    ];

    #[test]
    fn protocol_is_detected_from_the_fewest_first_bytes() {
        for (bytes, expected) in [
            (&b""[..], Detection::Incomplete),
            (b"\x80", Detection::Incomplete),
            (b"\x80\x03", Detection::Spdy(3)),
            (b"\x80\x02\x00\x01", Detection::Spdy(2)),
            (b"\x80\x04", Detection::UnknownSpdy(4)),
            (b"G", Detection::Http1),
            (b"P", Detection::Incomplete),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r", Detection::Incomplete),
            (H2_PREFACE, Detection::Http2),
            (b"PUT", Detection::Http1),
            (b"PRI * HTTP/1.1\r\n", Detection::Http1),
            (b"\x16\x03", Detection::Tls),
        ] {
            assert_eq!(detect(bytes), expected, "{bytes:x?}");
        }
    }

    #[test]
    fn spdy_3_and_3_1_start_as_3_unless_only_3_1_is_offered() {
        let (v3, v31) = (Protocol::Spdy(Version::V3), Protocol::Spdy(Version::V31));
        assert_eq!(choose(Detection::Spdy(3), &ALL).unwrap(), v3);
        assert_eq!(choose(Detection::Spdy(3), &[v3, v31]).unwrap(), v3);
        assert_eq!(
            choose(Detection::Spdy(3), &[Protocol::Http1, v31]).unwrap(),
            v31
        );
        assert_eq!(
            choose(Detection::Spdy(3), &[Protocol::Http1, v3]).unwrap(),
            v3
        );
        assert!(choose(Detection::Spdy(3), &[Protocol::Http1]).is_err());
        assert!(choose(Detection::Tls, &ALL).is_err());
    }

    #[test]
    fn without_alpn_the_client_uses_http1_or_fails() {
        assert_eq!(client(None, &ALL).unwrap(), Protocol::Http1);
        assert_eq!(client(None, &[Protocol::Http1]).unwrap(), Protocol::Http1);
        assert_eq!(
            client(Some(Protocol::Http2), &ALL).unwrap(),
            Protocol::Http2
        );
        let error = |offered: &[Protocol]| client(None, offered).unwrap_err().to_string();
        assert_eq!(
            error(&[Protocol::Spdy(Version::V31), Protocol::Spdy(Version::V3)]),
            "the server did not select a protocol by ALPN (offered: spdy/3.1, spdy/3); \
             it may only know NPN, which this client does not support"
        );
        assert_eq!(
            error(&[Protocol::Http2]),
            "the server did not select a protocol by ALPN (offered: h2)"
        );
    }
}
