//! A TCP connection as IP packets, in order; tests then reorder, repeat and drop them.

use spdy_inspect::direction::Direction;

use super::file::Packet;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;

/// Link types of captures, by their numbers.
pub(crate) const LINKS: [u32; 9] = [1, 113, 276, 0, 108, 101, 228, 12, 14];

/// Writes packets, one for each microsecond, unless a test changes `now`.
pub(crate) struct Wire {
    pub(crate) packets: Vec<Packet>,
    /// Nanoseconds since 1970.
    pub(crate) now: u64,
    link: u32,
    v6: bool,
    server_port: u16,
    /// Next sequence number to the server, to the client: the second wraps early.
    next: [u32; 2],
}

impl Wire {
    pub(crate) fn new(link: u32, v6: bool) -> Self {
        Self {
            packets: Vec::new(),
            now: 1_700_000_000_000_000_000,
            link,
            v6,
            server_port: 6121,
            next: [1000, u32::MAX - 20],
        }
    }

    /// SYN, SYN and ACK, ACK.
    pub(crate) fn connect(&mut self) {
        self.put(Direction::ToServer, SYN, &[]);
        self.next[0] = self.next[0].wrapping_add(1);
        self.put(Direction::ToClient, SYN | ACK, &[]);
        self.next[1] = self.next[1].wrapping_add(1);
        self.put(Direction::ToServer, ACK, &[]);
    }

    /// Sends `bytes` in segments of at most `mss`.
    pub(crate) fn send(&mut self, direction: Direction, bytes: &[u8], mss: usize) {
        for piece in bytes.chunks(mss) {
            self.put(direction, ACK, piece);
            let next = &mut self.next[direction.index()];
            *next = next.wrapping_add(piece.len() as u32);
        }
    }

    /// Skips this many bytes, which are not in the capture.
    pub(crate) fn skip(&mut self, direction: Direction, len: usize) {
        let next = &mut self.next[direction.index()];
        *next = next.wrapping_add(len as u32);
    }

    /// FIN of both sides.
    pub(crate) fn close(&mut self) {
        for direction in Direction::BOTH {
            self.put(direction, FIN | ACK, &[]);
            self.skip(direction, 1);
        }
    }

    /// Bare acknowledgements by the receiver of `direction`.
    pub(crate) fn acknowledge(&mut self, direction: Direction, times: usize) {
        for _ in 0..times {
            self.put(direction.back(), ACK, &[]);
        }
    }

    fn put(&mut self, direction: Direction, flags: u8, payload: &[u8]) {
        let which = direction.index();
        let mut ports = [40_000, self.server_port];
        let mut addresses = [1_u8, 2];
        if which == 1 {
            ports.reverse();
            addresses.reverse();
        }
        let mut tcp = Vec::new();
        tcp.extend(ports[0].to_be_bytes());
        tcp.extend(ports[1].to_be_bytes());
        tcp.extend(self.next[which].to_be_bytes());
        tcp.extend(self.next[1 - which].to_be_bytes());
        tcp.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        tcp.extend(payload);
        let mut ip = Vec::new();
        if self.v6 {
            ip.extend([0x60, 0, 0, 0]);
            // A hop-by-hop extension of 8 bytes precedes TCP.
            ip.extend((tcp.len() as u16 + 8).to_be_bytes());
            ip.extend([0, 64]);
            for last in addresses {
                ip.extend([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last]);
            }
            ip.extend([6, 0, 1, 4, 0, 0, 0, 0]);
        } else {
            ip.extend([0x45, 0]);
            ip.extend((tcp.len() as u16 + 20).to_be_bytes());
            ip.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
            for last in addresses {
                ip.extend([10, 0, 0, last]);
            }
        }
        ip.extend(tcp);
        let ethertype = if self.v6 { [0x86, 0xdd] } else { [0x08, 0x00] };
        let mut packet = match self.link {
            // With a VLAN tag.
            1 => [&[2; 12][..], &[0x81, 0, 0, 7], &ethertype].concat(),
            113 => [&[0; 14][..], &ethertype].concat(),
            276 => [&ethertype[..], &[0; 18]].concat(),
            0 | 108 => vec![2, 0, 0, 0],
            _ => Vec::new(),
        };
        packet.extend(ip);
        // Short Ethernet frames have padding, which is not payload.
        if self.link == 1 {
            packet.resize(packet.len().max(60), 0);
        }
        self.packets.push((self.now, packet));
        self.now += 1000;
    }
}
