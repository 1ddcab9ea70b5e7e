//! A TCP segment of the model: real payload, counted headers.
//!
//! ```text
//!  IPv4 head   TCP head   options                                          payload
//! +----------+----------+------------------------------------------------+---------+
//! |    20    |    20    | SYN: MSS 4, window scale 4, SACK + times 12    |         |
//! |          |          | then: times 12, SACK 2 + 2 + 8 a block         |         |
//! +----------+----------+------------------------------------------------+---------+
//! ```
//!
//! Sequence numbers count from 0 at the SYN of each side and are 64 bits wide, so the model never wraps. A writer of a capture adds
//! an initial number and truncates to 32 bits.

use bytes::Bytes;

/// Largest IPv4 packet of the model's links, bytes.
pub const MTU_BYTES: usize = 1_500;
/// Length of the IPv4 and TCP headers without options, bytes.
pub const HEADERS_LEN_BYTES: usize = 40;
/// The timestamp option with its two bytes of padding.
pub const TIMESTAMPS_LEN_BYTES: usize = 12;
/// Maximum SACK blocks without other options.
pub const MAX_SACK_BLOCKS: usize = 4;
/// Payload of a full segment without options.
pub const MSS_BYTES: usize = MTU_BYTES - HEADERS_LEN_BYTES;

/// The flags that the model uses.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Flags {
    /// Opens: occupies one sequence number.
    pub syn: bool,
    /// `ack` is valid; on every segment but the first SYN and some RSTs.
    pub ack: bool,
    /// A write of the sender ended here.
    pub psh: bool,
    /// The sender has ended its data: occupies one sequence number after the payload.
    pub fin: bool,
    /// The connection is reset.
    pub rst: bool,
}

/// A range of sequence numbers, the end excluded.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SackBlock {
    /// First byte.
    pub start: u64,
    /// One past the last.
    pub end: u64,
}

/// Up to [`MAX_SACK_BLOCKS`] blocks, the newest first; a block for a duplicate (RFC 2883) precedes all.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SackBlocks {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    len: u8,
}

impl SackBlocks {
    /// Appends a block, if there are fewer than `most`.
    pub fn push(&mut self, block: SackBlock, most: usize) {
        let at = usize::from(self.len);
        if at < most.min(MAX_SACK_BLOCKS) {
            self.blocks[at] = block;
            self.len += 1;
        }
    }

    /// The blocks, freshest first.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.len)]
    }

    /// True without blocks.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    const fn option_len_bytes(self) -> usize {
        match self.len {
            0 => 0,
            blocks => 4 + 8 * blocks as usize,
        }
    }
}

/// The timestamp option (RFC 7323), in milliseconds of the run, as Linux sends it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Timestamps {
    /// When this segment was sent.
    pub value_ms: u64,
    /// The value of the other side's last in-order segment; 0 on the first SYN.
    pub echo_ms: u64,
}

/// The options of a SYN.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SynOptions {
    /// Maximum payload that its sender accepts, without options.
    pub mss_bytes: usize,
    /// Whether its sender supports selective acknowledgements.
    pub sack: bool,
    /// Shift of its later windows.
    pub window_scale: Option<u8>,
}

/// One segment.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Segment {
    /// Sequence number of the first byte (or of the SYN or FIN alone).
    pub seq: u64,
    /// Next byte expected from the other side.
    pub ack: u64,
    /// Flags.
    pub flags: Flags,
    /// Bytes that its sender accepts beyond `ack`; already scaled.
    pub window_bytes: u64,
    /// Received ranges beyond `ack`.
    pub sack: SackBlocks,
    /// The timestamp option, if both sides agreed on it (or if this is a SYN that offers it).
    pub timestamps: Option<Timestamps>,
    /// On a SYN only.
    pub syn_options: Option<SynOptions>,
    /// Payload.
    pub payload: Bytes,
}

impl Segment {
    /// Sequence numbers that it occupies: payload, and one each for SYN and FIN.
    #[must_use]
    pub fn seq_len(&self) -> u64 {
        self.payload.len() as u64 + u64::from(self.flags.syn) + u64::from(self.flags.fin)
    }

    /// The sequence number after it.
    #[must_use]
    pub fn seq_end(&self) -> u64 {
        self.seq + self.seq_len()
    }

    /// Length of the TCP options, bytes; a multiple of 4.
    #[must_use]
    pub fn options_len_bytes(&self) -> usize {
        let timestamps = self.timestamps.map_or(0, |_| TIMESTAMPS_LEN_BYTES);
        let syn = self.syn_options.map_or(0, |options| {
            // SACK-permitted fits into the padding of the timestamps, else it has its own.
            let sack = if options.sack && self.timestamps.is_none() {
                4
            } else {
                0
            };
            4 + options.window_scale.map_or(0, |_| 4) + sack
        });
        timestamps + syn + self.sack.option_len_bytes()
    }

    /// Length of the IPv4 packet: 20 + 20 + options + payload, bytes.
    #[must_use]
    pub fn ip_len_bytes(&self) -> usize {
        HEADERS_LEN_BYTES + self.options_len_bytes() + self.payload.len()
    }

    /// The RST with which a host responds to `segment` if the port has no listener.
    ///
    /// `None` if it is an RST itself: there is no response to those.
    #[must_use]
    pub fn reset_for(segment: &Self) -> Option<Self> {
        if segment.flags.rst {
            return None;
        }
        let seq = if segment.flags.ack { segment.ack } else { 0 };
        Some(Self {
            seq,
            ack: segment.seq_end(),
            flags: Flags {
                rst: true,
                ack: !segment.flags.ack,
                ..Flags::default()
            },
            window_bytes: 0,
            sack: SackBlocks::default(),
            timestamps: None,
            syn_options: None,
            payload: Bytes::new(),
        })
    }
}
