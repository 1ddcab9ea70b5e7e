//! The protocols a connection can speak, and their names in ALPN and on the command line.

use std::fmt;
use std::str::FromStr;

use spdy_frame::version::Version;

/// What is spoken on a connection once it stands. TLS or not is told apart elsewhere.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
    /// SPDY of some version.
    Spdy(Version),
}

impl Protocol {
    /// Every protocol, the best first: what is offered where nobody says otherwise.
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
        }
    }

    /// The protocol of an ALPN name.
    #[must_use]
    pub fn from_alpn(name: &[u8]) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|protocol| protocol.alpn().as_bytes() == name)
    }

    /// Whether many exchanges share one connection at a time.
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

/// A name that is no protocol.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("no protocol is called {0:?}; there are http/1.1, h2, spdy/3.1, spdy/3, spdy/2")]
pub struct UnknownProtocol(pub String);

impl FromStr for Protocol {
    type Err = UnknownProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownProtocol> {
        match name {
            "http1" | "http/1.1" | "http" => Ok(Self::Http1),
            "h2" | "http2" => Ok(Self::Http2),
            "spdy" => Ok(Self::Spdy(Version::V31)),
            other => {
                Self::from_alpn(other.as_bytes()).ok_or_else(|| UnknownProtocol(other.to_owned()))
            }
        }
    }
}
