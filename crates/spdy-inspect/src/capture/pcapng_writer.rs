//! Writes packets to a capture file: pcapng in the form that `capture/pcapng.rs` reads, little-endian, raw IP, nanoseconds.
//!
//! ```text
//! section | interface ... | secrets ... | packet ...
//!                                         options: 1 comment, 2 direction
//! ```
//!
//! Readers decrypt TLS with secrets before the packets that need them, so write those first. Nothing is buffered: each block is
//! written at once.

use std::io::{self, Write};

use crate::capture::pcapng::{
    BLOCK_OVERHEAD, INTERFACE, OPTION_UNIT, PACKET, SECRETS, SECTION, TLS_KEY_LOG,
};

const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// LINKTYPE_RAW: packets begin with their IP header.
const RAW_IP: u16 = 101;
const OPTION_COMMENT: u16 = 1;
const OPTION_NAME: u16 = 2;
const OPTION_DESCRIPTION: u16 = 3;
const OPTION_FLAGS: u16 = 2;
const OPTION_PROGRAM: u16 = 4;

/// Direction of a packet at its interface.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PacketDirection {
    /// Into the host.
    In,
    /// Out of it.
    Out,
}

/// An interface of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct InterfaceId(u32);

/// A growing file. The writer should buffer, because a packet is written in several parts.
#[derive(Debug)]
pub struct PcapngWriter<W> {
    file: W,
    interfaces: u32,
}

impl<W: Write> PcapngWriter<W> {
    /// Creates a file without packets, written by `program`.
    ///
    /// # Errors
    ///
    /// Errors of `file`, as in all methods here.
    pub fn new(file: W, program: &str) -> io::Result<Self> {
        let mut section = Vec::new();
        section.extend(BYTE_ORDER.to_le_bytes());
        section.extend([1, 0, 0, 0]); // version 1.0
        section.extend([0xff; 8]); // until the end of the file
        options(&mut section, &[(OPTION_PROGRAM, program.as_bytes())]);
        let mut writer = Self {
            file,
            interfaces: 0,
        };
        writer.block(SECTION, section)?;
        Ok(writer)
    }

    /// Adds an interface whose packets begin with their IP header.
    ///
    /// # Errors
    ///
    /// Writing to the file failed.
    pub fn interface(&mut self, name: &str, description: &str) -> io::Result<InterfaceId> {
        let mut interface = Vec::new();
        interface.extend(RAW_IP.to_le_bytes());
        interface.extend([0; 6]); // reserved; no limit on the length of packets
        let unit = [9]; // 10^-9 s
        let option_list = [
            (OPTION_NAME, name.as_bytes()),
            (OPTION_DESCRIPTION, description.as_bytes()),
            (OPTION_UNIT, &unit),
        ];
        options(&mut interface, &option_list);
        self.block(INTERFACE, interface)?;
        self.interfaces += 1;
        Ok(InterfaceId(self.interfaces - 1))
    }

    /// Writes TLS secrets in the format of `SSLKEYLOGFILE`.
    ///
    /// # Errors
    ///
    /// Errors of the file.
    pub fn tls_secrets(&mut self, key_log: &[u8]) -> io::Result<()> {
        let mut secrets = Vec::new();
        secrets.extend(TLS_KEY_LOG.to_le_bytes());
        secrets.extend(length(key_log).to_le_bytes());
        secrets.extend(key_log);
        self.block(SECRETS, secrets)
    }

    /// Writes a packet that passed `interface` at `unix_nanos`, in nanoseconds since 1970.
    ///
    /// # Errors
    ///
    /// Writing to the file failed.
    pub fn packet(
        &mut self,
        interface: InterfaceId,
        unix_nanos: u64,
        passes: PacketDirection,
        packet: &[u8],
        comment: Option<&str>,
    ) -> io::Result<()> {
        let (InterfaceId(interface), len) = (interface, length(packet));
        let mut body = Vec::new();
        for word in [
            interface,
            (unix_nanos >> 32) as u32,
            unix_nanos as u32,
            len,
            len,
        ] {
            body.extend(word.to_le_bytes());
        }
        body.extend(packet);
        body.resize(body.len().next_multiple_of(4), 0);
        let flags: u32 = match passes {
            PacketDirection::In => 1,
            PacketDirection::Out => 2,
        };
        let flags = flags.to_le_bytes();
        let comment = comment.map(|comment| (OPTION_COMMENT, comment.as_bytes()));
        let option_list: Vec<_> = comment
            .into_iter()
            .chain([(OPTION_FLAGS, &flags[..])])
            .collect();
        options(&mut body, &option_list);
        self.block(PACKET, body)
    }

    /// Flushes everything that is not written yet.
    ///
    /// # Errors
    ///
    /// Errors of the file.
    pub fn finish(mut self) -> io::Result<W> {
        self.file.flush()?;
        Ok(self.file)
    }

    fn block(&mut self, kind: u32, mut body: Vec<u8>) -> io::Result<()> {
        body.resize(body.len().next_multiple_of(4), 0);
        let len = (length(&body) + BLOCK_OVERHEAD as u32).to_le_bytes();
        for part in [&kind.to_le_bytes()[..], &len, &body, &len] {
            self.file.write_all(part)?;
        }
        Ok(())
    }
}

/// Appends options and their end.
fn options(body: &mut Vec<u8>, options: &[(u16, &[u8])]) {
    for (code, value) in options {
        // Data longer than an option allows is cut. Comments of 64 KiB are not useful.
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        body.extend(code.to_le_bytes());
        body.extend((value.len() as u16).to_le_bytes());
        body.extend(value);
        body.resize(body.len().next_multiple_of(4), 0);
    }
    body.extend([0; 4]);
}

/// Lengths are 32 bits there, and written data is far smaller.
fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or_else(|_| panic!("{} bytes in one block", bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capture::{Reader, Record};
    use crate::limits::Limits;

    #[test]
    fn a_written_capture_parses_to_itself() {
        let mut writer = PcapngWriter::new(Vec::new(), "a test").unwrap();
        let mut interface = |name| writer.interface(name, "of a test").unwrap();
        let [one, two] = ["link0", "taken"].map(&mut interface);
        writer.tls_secrets(b"CLIENT_RANDOM 00 11\n").unwrap();
        let nanos = 1_784_000_000_123_456_789;
        for (interface, at, passes, packet, comment) in [
            (one, nanos, PacketDirection::Out, &[0x45; 41][..], None),
            (
                two,
                nanos + 1,
                PacketDirection::In,
                &[0x46; 40],
                Some("taken"),
            ),
        ] {
            let written = writer.packet(interface, at, passes, packet, comment);
            written.unwrap();
        }
        let mut reader = Reader::new(Limits::default());
        reader.push(&writer.finish().unwrap());
        let mut records = Vec::new();
        while let Some(record) = reader.poll().unwrap() {
            records.push(record);
        }
        let packet = |unix_nanos, bytes: Vec<u8>| Record::Packet {
            unix_nanos,
            link: 101,
            bytes: bytes.into(),
            cut: false,
        };
        assert_eq!(
            records,
            [
                Record::Secrets((&b"CLIENT_RANDOM 00 11\n"[..]).into()),
                packet(nanos, vec![0x45; 41]),
                packet(nanos + 1, vec![0x46; 40]),
            ]
        );
        reader.finish().unwrap();
    }
}
