//! A connection on paper: what went through, as a capture file that other programs can read.
//!
//! A relay on loopback notes every piece with its direction and writes it as the TCP packets it could have
//! been. Nothing of the system is captured, so no right is needed and nothing is missed.
//!
//! ```text
//! client --> Relay --> server
//!              `-- pcap: SYN, SYN+ACK, ACK, then a packet for each piece
//! ```

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The largest piece of a packet; with its heads it stays below the 64 KiB of IP.
const PIECE_BYTES: usize = 16 << 10;
/// LINKTYPE_RAW: packets begin with their IP head.
const LINKTYPE_RAW: u32 = 101;

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const PSH: u8 = 0x08;
const ACK: u8 = 0x10;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sender {
    Client,
    Server,
}

type Pieces = Arc<Mutex<Vec<(Sender, Vec<u8>)>>>;

/// One relayed connection.
pub(crate) struct Relay {
    /// Where the client connects to.
    pub(crate) address: SocketAddr,
    pieces: Pieces,
    relaying: JoinHandle<io::Result<()>>,
}

impl Relay {
    /// Relays the first connection that comes to `server`.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound socket");
        let pieces = Pieces::default();
        let shared_pieces = Arc::clone(&pieces);
        let relaying = thread::spawn(move || {
            let (client, _) = listener.accept()?;
            drop(listener); // a second connection would not be noted: refuse it
            let server = TcpStream::connect(server)?;
            let up = {
                let (from, to, shared_pieces) = (
                    client.try_clone()?,
                    server.try_clone()?,
                    Arc::clone(&shared_pieces),
                );
                thread::spawn(move || copy(from, to, Sender::Client, &shared_pieces))
            };
            copy(server, client, Sender::Server, &shared_pieces)?;
            up.join().expect("copying does not panic")
        });
        Self {
            address,
            pieces,
            relaying,
        }
    }

    /// Waits until both sides have ended, and writes what went through to `path`.
    pub(crate) fn write_pcap(self, path: &Path) {
        // A side that resets the connection at its end has still said all it had to say.
        let _ = self.relaying.join().expect("relaying does not panic");
        let pieces = self.pieces.lock().expect("no thread panicked");
        let mut capture = Capture::new(self.address.port());
        capture.packet(Sender::Client, SYN, &[]);
        capture.packet(Sender::Server, SYN | ACK, &[]);
        capture.packet(Sender::Client, ACK, &[]);
        for (from, bytes) in pieces.iter() {
            bytes
                .chunks(PIECE_BYTES)
                .for_each(|piece| capture.packet(*from, PSH | ACK, piece));
        }
        capture.packet(Sender::Client, FIN | ACK, &[]);
        capture.packet(Sender::Server, FIN | ACK, &[]);
        std::fs::write(path, capture.bytes).expect("write the test's file");
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, side: Sender, pieces: &Pieces) -> io::Result<()> {
    let mut buffer = vec![0; PIECE_BYTES];
    loop {
        let len = from.read(&mut buffer)?;
        if len == 0 {
            return to.shutdown(Shutdown::Write);
        }
        // Noted before it is sent on: the answer to it cannot be noted earlier.
        pieces
            .lock()
            .expect("no thread panicked")
            .push((side, buffer[..len].to_vec()));
        to.write_all(&buffer[..len])?;
    }
}

struct Capture {
    bytes: Vec<u8>,
    packets: u32,
    server_port: u16,
    /// Next sequence numbers of client and server.
    next: [u32; 2],
}

impl Capture {
    const CLIENT_PORT: u16 = 50_000;

    fn new(server_port: u16) -> Self {
        let mut bytes = Vec::new();
        bytes.extend(0xa1b2_c3d4_u32.to_le_bytes());
        bytes.extend([2, 0, 4, 0]); // version 2.4
        bytes.extend([0; 8]); // zone, accuracy
        bytes.extend(0x4_0000_u32.to_le_bytes());
        bytes.extend(LINKTYPE_RAW.to_le_bytes());
        Self {
            bytes,
            packets: 0,
            server_port,
            next: [1_000, 2_000],
        }
    }

    fn packet(&mut self, from: Sender, flags: u8, payload: &[u8]) {
        let (side, peer) = if from == Sender::Client {
            (0, 1)
        } else {
            (1, 0)
        };
        let ports = [Self::CLIENT_PORT, self.server_port];
        let length = 40 + payload.len();
        // Head of the record: a millisecond for each packet, and its length twice.
        for word in [
            self.packets / 1_000,
            self.packets % 1_000 * 1_000,
            length as u32,
            length as u32,
        ] {
            self.bytes.extend(word.to_le_bytes());
        }
        // IPv4, no checksum: the packet is never sent.
        self.bytes.extend([0x45, 0]);
        self.bytes.extend((length as u16).to_be_bytes());
        self.bytes.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
        self.bytes
            .extend([10, 0, 0, 1 + side as u8, 10, 0, 0, 1 + peer as u8]);
        // TCP, no checksum either.
        self.bytes.extend(ports[side].to_be_bytes());
        self.bytes.extend(ports[peer].to_be_bytes());
        self.bytes.extend(self.next[side].to_be_bytes());
        let acknowledged = if flags & ACK == 0 { 0 } else { self.next[peer] };
        self.bytes.extend(acknowledged.to_be_bytes());
        self.bytes.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
        self.bytes.extend(payload);
        let control = u32::from(flags & (SYN | FIN) != 0);
        self.next[side] = self.next[side].wrapping_add(payload.len() as u32 + control);
        self.packets += 1;
    }
}
