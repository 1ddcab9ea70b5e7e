//! The protocols of a race.

use std::fmt;
use std::str::FromStr;

use spdy_frame::version::Version;
use spdy_net::protocol::Protocol;

/// A protocol in a race: the protocol of its connections, with or without TLS.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum RaceProtocol {
    /// HTTP/1.1 in plain text.
    Http,
    /// HTTP/1.1 in TLS.
    Https,
    /// SPDY/3.1 in TLS.
    Spdy,
    /// SPDY/3.1 in plain text, by prior knowledge: many measurements of 2009 used it.
    SpdyPlain,
    /// SPDY/3 in TLS: 3.1 without a session window.
    Spdy3,
    /// SPDY/2 in TLS: without flow control, with four levels of priority and another dictionary.
    Spdy2,
    /// HTTP/2 in TLS.
    H2,
    /// HTTP/3 over QUIC, used from the first packet: the client assumes that the server supports it.
    H3,
}

impl RaceProtocol {
    /// The protocols that a race runs by default, in its order.
    pub const DEFAULTS: [Self; 4] = [Self::Http, Self::Https, Self::Spdy, Self::H2];

    /// All values.
    pub const ALL: [Self; 8] = [
        Self::Http,
        Self::Https,
        Self::Spdy,
        Self::SpdyPlain,
        Self::Spdy3,
        Self::Spdy2,
        Self::H2,
        Self::H3,
    ];

    /// The name on the command line and in results.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Spdy => "spdy",
            Self::SpdyPlain => "spdy-plain",
            Self::Spdy3 => "spdy3",
            Self::Spdy2 => "spdy2",
            Self::H2 => "h2",
            Self::H3 => "h3",
        }
    }

    /// What its loads lack of those of browsers, in both clocks.
    #[must_use]
    pub const fn limitation(self) -> Option<&'static str> {
        match self {
            Self::H3 => Some("HyStart is missing; browsers have it"),
            _ => None,
        }
    }

    /// True if it uses TLS.
    #[must_use]
    pub const fn is_secure(self) -> bool {
        !matches!(self, Self::Http | Self::SpdyPlain)
    }

    /// The protocol of its connections.
    #[must_use]
    pub const fn wire_protocol(self) -> Protocol {
        match self {
            Self::Http | Self::Https => Protocol::Http1,
            Self::Spdy | Self::SpdyPlain => Protocol::Spdy(Version::V31),
            Self::Spdy3 => Protocol::Spdy(Version::V3),
            Self::Spdy2 => Protocol::Spdy(Version::V2),
            Self::H2 => Protocol::Http2,
            Self::H3 => Protocol::Http3,
        }
    }
}

impl fmt::Display for RaceProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that is no protocol of a race.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("unknown protocol {0:?}: expected one of {names}", names = RaceProtocol::ALL.map(RaceProtocol::name).join(", "))]
pub struct UnknownRaceProtocol(pub String);

impl FromStr for RaceProtocol {
    type Err = UnknownRaceProtocol;

    fn from_str(name: &str) -> Result<Self, UnknownRaceProtocol> {
        let found = Self::ALL
            .into_iter()
            .find(|protocol| protocol.name() == name);
        found.ok_or_else(|| UnknownRaceProtocol(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_protocol_name_parses() {
        for protocol in RaceProtocol::ALL {
            assert_eq!(protocol.name().parse(), Ok(protocol));
        }
        let unknown = "spdi".parse::<RaceProtocol>().unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "unknown protocol \"spdi\": expected one of http, https, spdy, spdy-plain, spdy3, spdy2, h2, h3"
        );
    }
}
