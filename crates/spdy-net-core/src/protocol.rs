//! The protocols of a connection, and their names in ALPN and on the command line.

use std::fmt;
use std::str::FromStr;

use spdy_frame::version::Version;

/// The protocol of an established connection. It does not include whether the connection uses TLS.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// Any version of SPDY.
    Spdy(Version),
    /// HTTP/3, which has its own transport: QUIC over UDP.
    Http3,
}

impl Protocol {
    /// Every protocol over a byte stream (TCP, or TLS on it), in order of preference: the default offer. HTTP/3 is not included.
    pub const ALL: [Self; 5] = [
        Self::Spdy(Version::V31),
        Self::Spdy(Version::V3),
        Self::Spdy(Version::V2),
        Self::Http2,
        Self::Http1,
    ];

    /// The name in ALPN (`h2`, `http/1.1`, `spdy/3.1`).
    #[must_use]
    pub const fn alpn(self) -> &'static str {
        match self {
            Self::Http1 => "http/1.1",
            Self::Http2 => "h2",
            Self::Spdy(version) => version.alpn(),
            Self::Http3 => "h3",
        }
    }

    /// The protocol of an ALPN name.
    #[must_use]
    pub fn from_alpn(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .chain([Self::Http3])
            .find(|protocol| protocol.alpn().as_bytes() == name)
    }

    /// True if it uses QUIC, not TCP.
    #[must_use]
    pub const fn is_over_quic(self) -> bool {
        matches!(self, Self::Http3)
    }

    /// Those of `protocols` that use TCP, in their order.
    #[must_use]
    pub fn over_tcp(protocols: &[Self]) -> Vec<Self> {
        let over_tcp = protocols.iter().filter(|protocol| !protocol.is_over_quic());
        over_tcp.copied().collect()
    }

    /// True if many exchanges can share one connection concurrently.
    #[must_use]
    pub const fn is_multiplexed(self) -> bool {
        !matches!(self, Self::Http1)
    }
}

impl fmt::Display for Protocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.alpn())
    }
}

/// A name that is not a protocol.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown protocol {0:?}, expected http/1.1, h2, h3, spdy/3.1, spdy/3 or spdy/2")]
pub struct UnknownProtocol(pub String);

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        match name {
            "http1" | "http/1.1" | "http" => Ok(Self::Http1),
            "h2" | "http2" => Ok(Self::Http2),
            "http3" => Ok(Self::Http3),
            "spdy" => Ok(Self::Spdy(Version::V31)),
            other => {
                Self::from_alpn(other.as_bytes()).ok_or_else(|| UnknownProtocol(other.to_owned()))
            }
        }
    }
}
