//! Packets in transit, and the tokens of the network's timers.

use spdy_netem::path::{Direction, Transit};
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

/// Meaning of a timer's token: a packet arrives, or the timer of an endpoint fires. Two bits are the kind, the rest is a number.
#[derive(Clone, Copy)]
pub(super) enum Token {
    Packet(usize),
    Endpoint(EndpointId),
}

impl Token {
    pub(super) fn pack(self) -> u64 {
        match self {
            Self::Packet(slot) => (slot as u64) << 2,
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
            _ => Self::Endpoint(EndpointId {
                connection: number,
                side: Side::Server,
            }),
        }
    }
}
