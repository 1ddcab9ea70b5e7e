//! Writes a capture file of a connection that other programs can read.
//!
//! A relay on loopback records each chunk with its direction and writes it as the TCP packets that could have carried it. It does
//! not capture packets of the system, so it needs no privileges and loses nothing.
//!
//! ```text
//! client --> Relay --> server
//!              `-- pcap: SYN, SYN+ACK, ACK, then a packet for each chunk
//! ```

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

/// The largest payload of a packet; with its headers it stays below IP's limit of 64 KiB.
const MAX_CHUNK_BYTES: usize = 16 << 10;
/// LINKTYPE_RAW: packets begin with their IP header.
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

type Chunks = Arc<Mutex<Vec<(Sender, Vec<u8>)>>>;

/// One relayed connection.
pub(crate) struct Relay {
    /// Address for the client.
    pub(crate) address: SocketAddr,
    chunks: Chunks,
    relay: JoinHandle<io::Result<()>>,
}

impl Relay {
    /// Relays the first connection to `server`.
    pub(crate) fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port on loopback");
        let address = listener.local_addr().expect("a bound socket");
        let chunks = Chunks::default();
        let shared_chunks = Arc::clone(&chunks);
        let relay = thread::spawn(move || {
            let (client, _) = listener.accept()?;
            drop(listener); // refuses a second connection, which would not be recorded
            let server = TcpStream::connect(server)?;
            let up = {
                let (from, to, shared_chunks) = (
                    client.try_clone()?,
                    server.try_clone()?,
                    Arc::clone(&shared_chunks),
                );
                thread::spawn(move || copy(from, to, Sender::Client, &shared_chunks))
            };
            copy(server, client, Sender::Server, &shared_chunks)?;
            up.join().expect("copying does not panic")
        });
        Self {
            address,
            chunks,
            relay,
        }
    }

    /// Waits until both sides have closed, and writes the recorded connection to `path`.
    pub(crate) fn write_pcap(self, path: &Path) {
        // A side that resets the connection at its end has sent all its data before.
        let _ = self.relay.join().expect("relay does not panic");
        let chunks = self.chunks.lock().expect("no thread panicked");
        let mut capture = Capture::new(self.address.port());
        capture.packet(Sender::Client, SYN, &[]);
        capture.packet(Sender::Server, SYN | ACK, &[]);
        capture.packet(Sender::Client, ACK, &[]);
        for (from, bytes) in chunks.iter() {
            bytes
                .chunks(MAX_CHUNK_BYTES)
                .for_each(|chunk| capture.packet(*from, PSH | ACK, chunk));
        }
        capture.packet(Sender::Client, FIN | ACK, &[]);
        capture.packet(Sender::Server, FIN | ACK, &[]);
        std::fs::write(path, capture.bytes).expect("write the test's file");
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, side: Sender, chunks: &Chunks) -> io::Result<()> {
    let mut buffer = vec![0; MAX_CHUNK_BYTES];
    loop {
        let len = from.read(&mut buffer)?;
        if len == 0 {
            return to.shutdown(Shutdown::Write);
        }
        // Recorded before it is forwarded, so that a response to it is recorded later.
        chunks
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
        // Record header: one millisecond per packet, and the length twice.
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
