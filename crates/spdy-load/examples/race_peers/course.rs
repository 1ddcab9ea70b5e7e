//! Contestants and loads of the race.

use std::fmt;
use std::str::FromStr;

use spdy_frame::version::Version;
use spdy_net::protocol::Protocol;

/// With TLS or without: contestants of one lane are compared.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TransportKind {
    Plain,
    Tls,
}

impl fmt::Display for TransportKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Tls => "TLS",
        })
    }
}

impl FromStr for TransportKind {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        match name {
            "plain" => Ok(Self::Plain),
            "tls" => Ok(Self::Tls),
            _ => Err(format!("unknown lane {name:?}: expected plain or tls")),
        }
    }
}

/// SPDY/3.1, the protocol of most rows.
pub(crate) const SPDY: Protocol = Protocol::Spdy(Version::V31);

/// The contestant of comparison: the fastest of the peers.
pub(crate) const REFERENCE: (&str, Protocol) = ("nghttpd", Protocol::Http2);

/// The target: the maximum ratio of the CPU time of our SPDY/3.1 to that of the reference.
pub(crate) const TARGET_RATIO: f64 = 1.0;

/// Number of requests in flight.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Load {
    sessions: usize,
    streams: usize,
}

impl Load {
    /// The loads of every lane.
    pub(crate) const ALL: [Self; 2] = [
        Self {
            sessions: 1,
            streams: 100,
        },
        Self {
            sessions: 32,
            streams: 10,
        },
    ];

    /// Sessions and streams: without multiplexing as many connections as requests in flight.
    pub(crate) fn of(self, protocol: Protocol) -> (usize, usize) {
        match protocol.is_multiplexed() {
            true => (self.sessions, self.streams),
            false => (self.sessions * self.streams, 1),
        }
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {}", self.sessions, self.streams)
    }
}

/// A file that all contestants serve.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) bytes: usize,
}

impl File {
    pub(crate) fn of(bytes: usize) -> Self {
        Self {
            name: format!("{bytes}.bin"),
            bytes,
        }
    }

    /// Bytes that do not compress.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let mut state = 0x9e37_79b9_u32;
        let next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state >> 24) as u8
        };
        std::iter::repeat_with(next).take(self.bytes).collect()
    }
}

/// One comparison.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    pub(crate) transport: TransportKind,
    pub(crate) load: Load,
    pub(crate) file: File,
}

impl Cell {
    pub(crate) fn all(transports: &[TransportKind], loads: &[Load], files: &[File]) -> Vec<Self> {
        let mut cells = Vec::new();
        for transport in transports {
            for file in files {
                cells.extend(loads.iter().map(|load| Self {
                    transport: *transport,
                    load: *load,
                    file: file.clone(),
                }));
            }
        }
        cells
    }
}
