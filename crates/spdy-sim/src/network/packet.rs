//! Packets in transit, and the tokens of the network's timers.

use std::net::{IpAddr, SocketAddr};

use spdy_netem::path::{Direction, Transit};
use spdy_netem::queue::FlowKey;
use spdy_netem::segment::Segment;

use crate::network::datagram::Datagram;
use crate::network::endpoint::{EndpointId, Side};

/// A packet, and the rest of its path.
pub(super) struct Packet {
    pub(super) len_bytes: usize,
    pub(super) way: Direction,
    pub(super) load: PacketContent,
    /// It waits before a pipe that it must pass again.
    pub(super) transit: Option<Transit>,
}

/// Content of a packet.
pub(super) enum PacketContent {
    Segment { to: EndpointId, segment: Segment },
    Reset { to: EndpointId },
    Datagram(Datagram),
    Query { question: usize },
    Answer { question: usize },
}

impl PacketContent {
    /// The flow of a packet: one direction of a connection, a pair of UDP addresses, a DNS query, or its response. A shared pipe has one
    /// queue for both directions.
    pub(super) fn flow(&self) -> FlowKey {
        const TCP: u8 = 6;
        const UDP: u8 = 17;
        const DNS: u8 = 53;
        let numbered = |kind: u8, is_down: bool, number: usize| {
            let number = (number as u64).to_be_bytes();
            FlowKey::of_headers([kind, u8::from(is_down)].into_iter().chain(number))
        };
        match self {
            Self::Segment { to, .. } | Self::Reset { to } => {
                numbered(TCP, to.side == Side::Client, to.connection)
            }
            Self::Query { question } => numbered(DNS, false, *question),
            Self::Answer { question } => numbered(DNS, true, *question),
            Self::Datagram(Datagram { from, to, .. }) => {
                let address = |address: &SocketAddr| {
                    let ip = match address.ip() {
                        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                        IpAddr::V6(ip) => ip,
                    };
                    ip.octets().into_iter().chain(address.port().to_be_bytes())
                };
                FlowKey::of_headers([UDP].into_iter().chain(address(from)).chain(address(to)))
            }
        }
    }
}

/// Meaning of a timer's token: a packet arrives, the timer of an endpoint fires, a packet leaves a queue of the path, or a program
/// handles its arrivals. Two bits are the kind, the rest is a number.
#[derive(Clone, Copy)]
pub(super) enum Token {
    Packet(usize),
    Path,
    Endpoint(EndpointId),
    Program(Side),
    /// The answer to a query leaves.
    Answer(usize),
}

impl Token {
    pub(super) fn pack(self) -> u64 {
        match self {
            Self::Packet(slot) => (slot as u64) << 2,
            Self::Path => 3,
            Self::Program(Side::Client) => (1 << 2) | 3,
            Self::Program(Side::Server) => (2 << 2) | 3,
            Self::Answer(question) => (question as u64 + 3) << 2 | 3,
            Self::Endpoint(EndpointId { connection, side }) => {
                ((connection as u64) << 2) | if side == Side::Client { 1 } else { 2 }
            }
        }
    }

    pub(super) fn unpack(token: u64) -> Self {
        let number = usize::try_from(token >> 2).expect("the value was converted from a usize");
        match token & 3 {
            0 => Self::Packet(number),
            1 => Self::Endpoint(EndpointId {
                connection: number,
                side: Side::Client,
            }),
            3 => match number {
                0 => Self::Path,
                1 => Self::Program(Side::Client),
                2 => Self::Program(Side::Server),
                other => Self::Answer(other - 3),
            },
            _ => Self::Endpoint(EndpointId {
                connection: number,
                side: Side::Server,
            }),
        }
    }
}
