//! Kind and capacity of a queue.

use std::fmt;

/// Capacity of a drop-tail queue, past which it drops a new packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueueLimit {
    /// This many packets of any length.
    Packets(u32),
    /// This many bytes of whole packets, including headers.
    Bytes(u64),
}

/// Kind of a queue.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum QueueConfig {
    /// Drops a new packet when it is full.
    DropTail(QueueLimit),
    /// CoDel (RFC 8289) with Linux's defaults.
    CoDel,
    /// FQ-CoDel (RFC 8290) with Linux's defaults.
    FqCoDel,
}

impl QueueConfig {
    /// Linux netem's default; far from the limit for most page loads.
    pub const DEFAULT: Self = Self::packets(1_000);

    /// A drop-tail queue of this many packets.
    #[must_use]
    pub const fn packets(packets: u32) -> Self {
        Self::DropTail(QueueLimit::Packets(packets))
    }
}

impl Default for QueueConfig {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Prints in the syntax of profiles: `50p`, `64kb`, `1500b`.
impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Packets(packets) => write!(f, "{packets}p"),
            Self::Bytes(bytes) if bytes > 0 && bytes % 1_000 == 0 => {
                write!(f, "{}kb", bytes / 1_000)
            }
            Self::Bytes(bytes) => write!(f, "{bytes}b"),
        }
    }
}

/// Prints in the syntax of profiles: a [`QueueLimit`], `codel` or `fq_codel`.
impl fmt::Display for QueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DropTail(limit) => limit.fmt(f),
            Self::CoDel => f.write_str("codel"),
            Self::FqCoDel => f.write_str("fq_codel"),
        }
    }
}
