//! Parses a link's packet to a TCP segment.
//!
//! ```text
//! Ethernet (VLAN tags too) ─┐
//! Linux cooked, 1 and 2 ────┼─▶ IPv4 | IPv6 (and its extension headers) ─▶ TCP
//! NULL, LOOP, raw IP ───────┘
//! ```
//!
//! IP fragments are not reassembled: TCP avoids them, and one causes a gap.
//!
//! Not by etherparse: it supports only Ethernet and Linux cooked 1 of these links, so the rest would stay here. Parsing the IP and
//! TCP headers is no longer than converting its errors to the four counted results.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// TCP flags that are used here.
pub(crate) const FIN: u8 = 0x01;
pub(crate) const SYN: u8 = 0x02;
pub(crate) const RST: u8 = 0x04;
pub(crate) const ACK: u8 = 0x10;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_TCP: u8 = 6;

/// A TCP segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) from: SocketAddr,
    pub(crate) to: SocketAddr,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: u8,
    /// The captured part of it.
    pub(crate) payload: &'a [u8],
}

/// Why a packet is no segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum NotSegment {
    /// It has another protocol.
    NotTcp,
    /// An IP fragment.
    Fragment,
    /// Too short for its own headers, or with impossible lengths.
    Damaged,
    /// An unsupported link type.
    Link,
}

/// The segment in `packet`, captured on a link of type `link`.
pub(crate) fn segment(link: u32, packet: &[u8]) -> Result<Segment<'_>, NotSegment> {
    match link {
        1 => by_ethertype(packet, 12),
        113 => by_ethertype(packet, 14),
        // Linux cooked 2 begins with the protocol and is 20 bytes long.
        276 => match u16_at(packet, 0)? {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => ip(from(packet, 20)?),
            _ => Err(NotSegment::NotTcp),
        },
        // The address family differs between systems and byte orders; IP has its own version field.
        0 | 108 => ip(from(packet, 4)?),
        // 12 and 14 are raw IP if the file has the system's number instead of the registry's.
        12 | 14 | 101 | 228 | 229 => ip(packet),
        _ => Err(NotSegment::Link),
    }
}

fn from(bytes: &[u8], at: usize) -> Result<&[u8], NotSegment> {
    bytes.get(at..).ok_or(NotSegment::Damaged)
}

fn u16_at(bytes: &[u8], at: usize) -> Result<u16, NotSegment> {
    let two = bytes.get(at..).and_then(|rest| rest.first_chunk());
    two.map(|two| u16::from_be_bytes(*two))
        .ok_or(NotSegment::Damaged)
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, NotSegment> {
    let four = bytes.get(at..).and_then(|rest| rest.first_chunk());
    four.map(|four| u32::from_be_bytes(*four))
        .ok_or(NotSegment::Damaged)
}

/// The ethertype is at `at`, or behind VLAN tags.
fn by_ethertype(packet: &[u8], mut at: usize) -> Result<Segment<'_>, NotSegment> {
    loop {
        match u16_at(packet, at)? {
            0x8100 | 0x88a8 | 0x9100 => at += 4,
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => return ip(from(packet, at + 2)?),
            _ => return Err(NotSegment::NotTcp),
        }
    }
}

fn ip(packet: &[u8]) -> Result<Segment<'_>, NotSegment> {
    match packet.first().map(|first| first >> 4) {
        Some(4) => ipv4(packet),
        Some(6) => ipv6(packet),
        Some(_) => Err(NotSegment::NotTcp),
        None => Err(NotSegment::Damaged),
    }
}

fn ipv4(packet: &[u8]) -> Result<Segment<'_>, NotSegment> {
    let head: &[u8; 20] = packet.first_chunk().ok_or(NotSegment::Damaged)?;
    let head_len = usize::from(head[0] & 0x0f) * 4;
    if head_len < 20 {
        return Err(NotSegment::Damaged);
    }
    // More fragments, or an offset.
    if u16_at(packet, 6)? & 0x3fff != 0 {
        return Err(NotSegment::Fragment);
    }
    if head[9] != PROTOCOL_TCP {
        return Err(NotSegment::NotTcp);
    }
    let four = |at| {
        *head[at..]
            .first_chunk::<4>()
            .expect("the head has 20 bytes")
    };
    let addresses = (
        IpAddr::V4(Ipv4Addr::from(four(12))),
        IpAddr::V4(Ipv4Addr::from(four(16))),
    );
    // 0 is the length of packets over 64 KiB if a kernel leaves segmentation to the network card.
    let len = match usize::from(u16_at(packet, 2)?) {
        0 => packet.len(),
        len => len,
    };
    let len = len.checked_sub(head_len).ok_or(NotSegment::Damaged)?;
    tcp(addresses, from(packet, head_len)?, len)
}

fn ipv6(packet: &[u8]) -> Result<Segment<'_>, NotSegment> {
    let head: &[u8; 40] = packet.first_chunk().ok_or(NotSegment::Damaged)?;
    let sixteen = |at| {
        *head[at..]
            .first_chunk::<16>()
            .expect("the head has 40 bytes")
    };
    let addresses = (
        IpAddr::V6(Ipv6Addr::from(sixteen(8))),
        IpAddr::V6(Ipv6Addr::from(sixteen(24))),
    );
    let mut len = match usize::from(u16_at(packet, 4)?) {
        0 => packet.len() - 40,
        len => len,
    };
    let (mut next, mut at) = (head[6], 40);
    loop {
        match next {
            PROTOCOL_TCP => return tcp(addresses, from(packet, at)?, len),
            44 => return Err(NotSegment::Fragment),
            // Hop-by-hop, routing, destination options: next, length in eights beyond the first.
            0 | 43 | 60 => {
                let extension: &[u8; 2] =
                    from(packet, at)?.first_chunk().ok_or(NotSegment::Damaged)?;
                let extension_len = 8 + usize::from(extension[1]) * 8;
                next = extension[0];
                at += extension_len;
                len = len.checked_sub(extension_len).ok_or(NotSegment::Damaged)?;
            }
            _ => return Err(NotSegment::NotTcp),
        }
    }
}

/// `len` is the length by IP; the capture may have less, and a link may have added padding.
fn tcp(
    (from_address, to_address): (IpAddr, IpAddr),
    packet: &[u8],
    len: usize,
) -> Result<Segment<'_>, NotSegment> {
    let head: &[u8; 20] = packet.first_chunk().ok_or(NotSegment::Damaged)?;
    let head_len = usize::from(head[12] >> 4) * 4;
    if head_len < 20 {
        return Err(NotSegment::Damaged);
    }
    let payload_len = len.checked_sub(head_len).ok_or(NotSegment::Damaged)?;
    let payload = packet.get(head_len..).unwrap_or_default();
    let payload = payload.get(..payload_len).unwrap_or(payload);
    Ok(Segment {
        from: SocketAddr::new(from_address, u16_at(packet, 0)?),
        to: SocketAddr::new(to_address, u16_at(packet, 2)?),
        seq: u32_at(packet, 4)?,
        ack: u32_at(packet, 8)?,
        flags: head[13],
        payload,
    })
}
