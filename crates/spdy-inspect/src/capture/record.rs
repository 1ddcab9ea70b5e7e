//! What a capture file holds, and why one cannot be read.

use bytes::Bytes;

/// Why bytes are no capture. Every variant says where: `at` is the offset in the file of the record.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// The file has an unknown format.
    #[error("file starts with {found:02x?}, expected the magic number of pcap or pcapng")]
    Magic {
        /// The first four bytes.
        found: [u8; 4],
    },
    /// The file ends inside a record.
    #[error("file ends {found} bytes into the record at byte {at}")]
    Truncated {
        /// Where the record begins.
        at: u64,
        /// Bytes of it that are there.
        found: usize,
    },
    /// A record is too long, or its length is impossible.
    #[error("record at byte {at} has {found} bytes, limit {limit}")]
    RecordLength {
        /// Where the record begins.
        at: u64,
        /// Bytes that it claims.
        found: u64,
        /// Most that is taken.
        limit: u64,
    },
    /// A pcapng block whose length is too short for its type, no multiple of four, or not the same at its end.
    #[error("block of type {kind:#x} at byte {at}: {what}")]
    Block {
        /// Where the block begins.
        at: u64,
        /// Type of the block.
        kind: u32,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A packet of an interface that the file did not describe.
    #[error("packet at byte {at} has interface {found}, but only {described} are described")]
    Interface {
        /// Where the block begins.
        at: u64,
        /// The interface.
        found: u32,
        /// How many interfaces the file describes.
        described: usize,
    },
    /// More interfaces than [`Limits::interfaces`](crate::limits::Limits::interfaces).
    #[error("more than {limit} interfaces at byte {at}")]
    TooManyInterfaces {
        /// Where the block begins.
        at: u64,
        /// Most that are taken.
        limit: usize,
    },
}

/// What a capture holds.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Record {
    /// A packet.
    Packet {
        /// Nanoseconds since 1970, or 0 if the file does not say.
        unix_nanos: u64,
        /// Link type, of the registry of tcpdump (`LINKTYPE_*`).
        link: u32,
        /// The bytes that were kept.
        bytes: Bytes,
        /// Whether the packet was longer than what was kept.
        cut: bool,
    },
    /// TLS secrets, in the form of NSS's key log.
    Secrets(Bytes),
}

/// What a format makes of the bytes that are there.
pub(crate) enum Step {
    /// More are needed.
    Wait,
    /// So many bytes were read, and contain this record.
    Consumed(usize, Option<Record>),
}
