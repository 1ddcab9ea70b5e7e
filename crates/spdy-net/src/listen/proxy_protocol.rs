//! The PROXY protocol, versions 1 and 2, on the receiving side: what a proxy in front states about a connection before
//! the first byte of its client (HAProxy's `proxy-protocol.txt`; the proxy-header crate reads the header).
//!
//! ```text
//!  PROXY TCP4 203.0.113.7 192.0.2.1 53952 443\r\n | the client's bytes      version 1
//!  0d 0a 0d 0a 00 0d 0a 51 55 49 54 0a 21 11 …     | the client's bytes      version 2
//! ```
//!
//! It is read only from trusted proxies: any other peer could name any address (§2).

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use proxy_header::{Error, ParseConfig, ProxyHeader};
use spdy::upgrade::Rewind;
use spdy_net_core::network::BoxIo;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, timeout_at};

/// The start of a version 2 header if the proxy connects for itself, as for a health check.
const LOCAL: &[u8] = b"\r\n\r\n\0\r\nQUIT\n\x20";
/// Maximum length of a header: addresses have at most 52 bytes, and additional fields a few hundred.
const MAX_BYTES: usize = 4096;
/// Size of the first read.
const FIRST_READ: usize = 512;
/// Maximum number of bytes of an invalid header that an error quotes.
const MAX_QUOTED_BYTES: usize = 32;
/// Timeout for reading the header: TCP retransmits a lost first segment after 1 s, and again after 3 s.
const READ_TIMEOUT: Duration = Duration::from_secs(10);

/// The contents of a PROXY header.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct ProxyHeaderInfo {
    /// The client's address; `None` if the proxy connects for itself, or does not state it.
    pub(crate) client: Option<SocketAddr>,
    /// The port to which the client connected.
    pub(crate) port: Option<u16>,
    /// Whether the client used TLS.
    pub(crate) is_secure: Option<bool>,
}

/// Why the PROXY header of a connection could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProxyHeaderError {
    /// The connection began with other bytes.
    #[error("expected a PROXY protocol header of version 1 or 2, found \"{}\"", .0.escape_ascii())]
    NotAHeader(Box<[u8]>),
    /// The header is too long.
    #[error("PROXY protocol header exceeds {MAX_BYTES} bytes")]
    TooLong,
    /// The connection ended without a byte, like a check if the port is open.
    #[error("the connection ended before its first byte")]
    NoBytes,
    /// The connection ended within the header.
    #[error("the connection ended after {0} bytes of the PROXY protocol header")]
    Truncated(usize),
    /// The header was not complete in time.
    #[error("PROXY protocol header incomplete after {READ_TIMEOUT:?}: received {0} bytes")]
    TimedOut(usize),
    /// The connection failed.
    #[error("the connection failed: {0}")]
    Io(#[from] io::Error),
}

/// Reads the header from `io`. Returns it, and `io` from the first byte of the client.
pub(crate) async fn read(mut io: BoxIo) -> Result<(BoxIo, ProxyHeaderInfo), ProxyHeaderError> {
    let mut seen = BytesMut::with_capacity(FIRST_READ);
    let deadline = Instant::now() + READ_TIMEOUT;
    loop {
        match parse(&seen) {
            Ok((announced, len)) => {
                seen.advance(len);
                if !seen.is_empty() {
                    io = Box::new(Rewind::new(seen.freeze(), io));
                }
                return Ok((io, announced));
            }
            Err(Error::BufferTooShort) if seen.len() < MAX_BYTES => {}
            Err(Error::BufferTooShort) => return Err(ProxyHeaderError::TooLong),
            Err(_) => {
                let first = &seen[..seen.len().min(MAX_QUOTED_BYTES)];
                return Err(ProxyHeaderError::NotAHeader(first.into()));
            }
        }
        let Ok(read) = timeout_at(deadline, io.read_buf(&mut seen)).await else {
            return Err(ProxyHeaderError::TimedOut(seen.len()));
        };
        match (read?, seen.len()) {
            (0, 0) => return Err(ProxyHeaderError::NoBytes),
            (0, len) => return Err(ProxyHeaderError::Truncated(len)),
            _ => {}
        }
    }
}

/// Parses the header at the beginning of `seen`, and returns its length in bytes.
fn parse(seen: &[u8]) -> Result<(ProxyHeaderInfo, usize), Error> {
    if let Some(local) = seen.strip_prefix(LOCAL) {
        // The family and addresses must be ignored (§2.2), but the crate would read them.
        let [_, high, low, rest @ ..] = local else {
            return Err(Error::BufferTooShort);
        };
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        return match rest.len() < len {
            true => Err(Error::BufferTooShort),
            false => Ok((ProxyHeaderInfo::default(), LOCAL.len() + 3 + len)),
        };
    }
    let (header, len) = ProxyHeader::parse(seen, ParseConfig::default())?;
    Ok((header_info(&header), len))
}

fn header_info(header: &ProxyHeader<'_>) -> ProxyHeaderInfo {
    let addresses = header.proxied_address();
    ProxyHeaderInfo {
        client: addresses.map(|addresses| {
            let client = addresses.source;
            SocketAddr::new(client.ip().to_canonical(), client.port())
        }),
        port: addresses.map(|addresses| addresses.destination.port()),
        is_secure: header.ssl().map(|ssl| ssl.client_ssl()),
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::{any, prop_assert, prop_assert_eq, proptest};
    use proxy_header::{ProxiedAddress, SslInfo, Tlv};
    use tokio::io::AsyncWriteExt;

    use super::*;

    /// Reads a header from `bytes`, which are written `at_once` bytes at a time. Returns the result, and the remaining bytes.
    async fn heard(
        bytes: &[u8],
        at_once: usize,
    ) -> Result<(ProxyHeaderInfo, Vec<u8>), ProxyHeaderError> {
        let (mut far, near) = tokio::io::duplex(at_once);
        let bytes = bytes.to_vec();
        let writing = tokio::spawn(async move {
            let _ = far.write_all(&bytes).await; // the reader may stop early
        });
        let (mut io, announced) = read(Box::new(near)).await?;
        let mut rest = Vec::new();
        io.read_to_end(&mut rest).await?;
        writing.await.expect("it writes");
        Ok((announced, rest))
    }

    fn version_2(source: &str, tlvs: Vec<Tlv<'_>>) -> Vec<u8> {
        let to = if source.starts_with('[') {
            "[2001:db8::1]:443"
        } else {
            "192.0.2.1:443"
        };
        let [source, to] = [source, to].map(|text| text.parse().expect("an address"));
        let header = ProxyHeader::with_tlvs(Some(ProxiedAddress::stream(source, to)), tlvs);
        let mut bytes = Vec::new();
        header.encode_v2(&mut bytes).expect("it is short");
        bytes
    }

    #[tokio::test]
    async fn proxy_header_is_read_and_the_client_bytes_stay() {
        let tls = |is_secure| Tlv::Ssl(SslInfo::new(is_secure, false, false, 0));
        let client = |text: &str, is_secure| ProxyHeaderInfo {
            client: Some(text.parse().expect("an address")),
            port: Some(443),
            is_secure,
        };
        let local = |more: &[u8]| [LOCAL, more].concat();
        let long = Tlv::Noop(2000);
        for (header, expected) in [
            (
                b"PROXY TCP4 203.0.113.7 192.0.2.1 53952 443\r\n".to_vec(),
                client("203.0.113.7:53952", None),
            ),
            (
                b"PROXY TCP6 2001:db8::7 2001:db8::1 53952 443\r\n".to_vec(),
                client("[2001:db8::7]:53952", None),
            ),
            (b"PROXY UNKNOWN\r\n".to_vec(), ProxyHeaderInfo::default()),
            (
                b"PROXY UNKNOWN what ever\r\n".to_vec(),
                ProxyHeaderInfo::default(),
            ),
            (
                version_2("203.0.113.7:5", vec![]),
                client("203.0.113.7:5", None),
            ),
            (
                version_2("[2001:db8::7]:5", vec![tls(true)]),
                client("[2001:db8::7]:5", Some(true)),
            ),
            (
                version_2("[::ffff:203.0.113.7]:5", vec![long, tls(false)]),
                client("203.0.113.7:5", Some(false)),
            ),
            (local(&[0, 0, 0]), ProxyHeaderInfo::default()),
            (local(&[0x11, 0, 0]), ProxyHeaderInfo::default()),
            (local(&[0xff, 0, 3, 1, 2, 3]), ProxyHeaderInfo::default()),
        ] {
            let whole = [&header[..], b"GET / HTTP/1.1\r\n"].concat();
            for at_once in [1, 7, 8192] {
                let case = format!(
                    "{:?}, in pieces of {at_once}",
                    header.escape_ascii().to_string()
                );
                let (announced, rest) = heard(&whole, at_once).await.expect(&case);
                assert_eq!(announced, expected, "{case}");
                assert_eq!(rest, b"GET / HTTP/1.1\r\n", "{case}");
            }
        }
    }

    #[tokio::test]
    async fn bytes_that_are_not_a_proxy_header_are_an_error() {
        let endless = version_2("203.0.113.7:5", vec![Tlv::Noop(8192)]);
        for (bytes, expected) in [
            (
                &b"GET / HTTP/1.1\r\nHost: site.test\r\n\r\n"[..],
                "expected a PROXY protocol header of version 1 or 2, found \"GET / HTTP/1.1\\r\\nHost: site.test\\r\"",
            ),
            (
                b"PROXY TCP4 203.0.113.7 2001:db8::1 5 443\r\n",
                "expected a PROXY protocol header of version 1 or 2, found \"PROXY TCP4 203.0.113.7 2001:db8:\"",
            ),
            (
                b"PROXY TCP4 203.0.113.7 ",
                "the connection ended after 23 bytes of the PROXY protocol header",
            ),
            (b"", "the connection ended before its first byte"),
            (&endless, "PROXY protocol header exceeds 4096 bytes"),
        ] {
            let error = heard(bytes, 8192).await.expect_err(expected);
            assert_eq!(error.to_string(), expected);
        }
        let endless = [&b"PROXY UNKNOWN "[..], &[b'x'; 8192]].concat();
        heard(&endless, 8192)
            .await
            .expect_err("a line that does not end");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unfinished_proxy_header_times_out() {
        for (bytes, expected) in [
            (&b""[..], "received 0 bytes"),
            (b"PROXY ", "received 6 bytes"),
        ] {
            let (mut far, near) = tokio::io::duplex(64);
            far.write_all(bytes).await.expect("there is room");
            let began = Instant::now();
            let Err(reason) = read(Box::new(near)).await else {
                panic!("no client was announced by {bytes:?}");
            };
            assert_eq!(began.elapsed(), READ_TIMEOUT);
            assert!(reason.to_string().contains(expected), "{reason}");
        }
    }

    proptest! {
        /// No missing byte is assumed, and bytes after a header make no difference.
        #[test]
        fn a_header_is_as_long_as_it_is_whatever_follows(
            start in 0..3usize, mut bytes in vec(any::<u8>(), 0..300), more in vec(any::<u8>(), 0..20),
        ) {
            let starts: [&[u8]; 3] = [b"", LOCAL, b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0"];
            bytes.splice(0..0, starts[start].iter().copied());
            let Ok((announced, len)) = parse(&bytes) else {
                return Ok(());
            };
            prop_assert!(len <= bytes.len());
            bytes.truncate(len);
            prop_assert_eq!(parse(&bytes), Ok((announced, len)));
            bytes.extend(more);
            prop_assert_eq!(parse(&bytes), Ok((announced, len)));
        }
    }
}
