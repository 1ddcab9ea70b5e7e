//! Records of a capture file, and its errors.

use bytes::Bytes;

/// Why bytes are not a capture. In every variant `at` is the offset of the record in the file.
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
        /// Offset of the record.
        at: u64,
        /// Number of its available bytes.
        found: usize,
    },
    /// A record is too long, or its length is impossible.
    #[error("record at byte {at} has {found} bytes, limit {limit}")]
    RecordLength {
        /// Offset of the record.
        at: u64,
        /// Its stated length.
        found: u64,
        /// The limit.
        limit: u64,
    },
    /// A pcapng block whose length is too short for its type, not a multiple of four, or different at its end.
    #[error("block of type {kind:#x} at byte {at}: {what}")]
    Block {
        /// Offset of the block.
        at: u64,
        /// Type of the block.
        kind: u32,
        /// The error.
        what: &'static str,
    },
    /// A packet of an interface that the file did not describe.
    #[error("packet at byte {at} has interface {found}, but only {described} are described")]
    Interface {
        /// Offset of the block.
        at: u64,
        /// The interface.
        found: u32,
        /// Number of interfaces in the file.
        described: usize,
    },
    /// More interfaces than [`Limits::interfaces`](crate::limits::Limits::interfaces).
    #[error("more than {limit} interfaces at byte {at}")]
    TooManyInterfaces {
        /// Offset of the block.
        at: u64,
        /// The limit.
        limit: usize,
    },
}

/// A record of a capture.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Record {
    /// A packet.
    Packet {
        /// Nanoseconds since 1970, or 0 if the file does not have the time.
        unix_nanos: u64,
        /// Link type, from tcpdump's registry (`LINKTYPE_*`).
        link: u32,
        /// The captured bytes.
        bytes: Bytes,
        /// True if the packet was longer than the captured bytes.
        cut: bool,
    },
    /// TLS secrets, in the format of NSS's key log.
    Secrets(Bytes),
}

/// Result of parsing the available bytes.
pub(crate) enum Step {
    /// More bytes are needed.
    Wait,
    /// So many bytes were read, and contain this record.
    Consumed(usize, Option<Record>),
}
