//! SETTINGS: parameters of the sender (SPDY/3.1 §2.6.4).
//!
//! ```text
//! +-+-----------------+-----------------+
//! |1|     version     |    type = 4     |   16 + 16 bits
//! +-+-------+---------+-----------------+
//! |  flags  |     length = 4 + 8n       |   8 + 24 bits; CLEAR_SETTINGS = 0x01
//! +---------+---------------------------+
//! |                  n                  |   32 bits
//! +---------+---------------------------+   then n times:
//! |  flags  |         id (big)          |   8 + 24 bits in SPDY/3 and 3.1
//! |  id (little)              |  flags  |   24 + 8 bits in SPDY/2
//! +---------+---------------------------+
//! |                value                |   32 bits
//! +-------------------------------------+
//! ```
//!
//! The order of SPDY/2 comes from the first implementation, which wrote a word in host order on a little-endian machine.
//! All other implementations copied it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::error::FrameError;
use crate::frames::head::ControlHead;
use crate::frames::kind::Kind;
use crate::version::Version;

const FLAG_CLEAR: u8 = 0x01;
const COUNT_LEN: usize = 4;
const ENTRY_LEN: usize = 8;

/// Parameters of the sender, or stored values that it returns to its peer.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Settings {
    /// The client first deletes its stored values (only from server to client).
    pub clear: bool,
    /// When read: the first entry of each ID, in the order of the wire, up to
    /// [`Limits::settings_entries`](crate::decoder::Limits). Unknown IDs are included.
    pub entries: Vec<Setting>,
    /// When read: the number of entries after that limit, which were not read. Never written.
    pub ignored: usize,
}

/// One entry. Values are absolute, and unsigned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Setting {
    /// The parameter.
    pub id: SettingId,
    /// [`PERSIST_VALUE`](Self::PERSIST_VALUE), [`PERSISTED`](Self::PERSISTED), and other bits as received.
    pub flags: u8,
    /// The value, in the unit of its id.
    pub value: u32,
}

impl Setting {
    /// The server requests that the client stores the value.
    pub const PERSIST_VALUE: u8 = 0x01;
    /// The client returns a value that it stored.
    pub const PERSISTED: u8 = 0x02;

    /// `id` set to `value`, not to be stored.
    #[must_use]
    pub const fn new(id: SettingId, value: u32) -> Self {
        Self {
            id,
            flags: 0,
            value,
        }
    }
}

/// The id of a SETTINGS entry, 24 bits on the wire. Unknown ones are preserved.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SettingId(pub u32);

impl SettingId {
    /// 1: expected upload bandwidth, KB/s. A hint.
    pub const UPLOAD_BANDWIDTH: Self = Self(1);
    /// 2: expected download bandwidth, KB/s. A hint.
    pub const DOWNLOAD_BANDWIDTH: Self = Self(2);
    /// 3: expected round-trip time, ms. A hint.
    pub const ROUND_TRIP_TIME: Self = Self(3);
    /// 4: streams that the sender's peer may have open at once.
    pub const MAX_CONCURRENT_STREAMS: Self = Self(4);
    /// 5: congestion window of the TCP connection, packets. A hint.
    pub const CURRENT_CWND: Self = Self(5);
    /// 6: share of retransmitted bytes. A hint.
    pub const DOWNLOAD_RETRANS_RATE: Self = Self(6);
    /// 7: bytes that may be sent to the sender on a new stream (no effect in SPDY/2).
    pub const INITIAL_WINDOW_SIZE: Self = Self(7);
    /// 8: places in the client's certificate vector (SPDY/3; no effect since).
    pub const CLIENT_CERTIFICATE_VECTOR_SIZE: Self = Self(8);

    const MASK: u32 = 0x00ff_ffff;
}

impl std::fmt::Display for SettingId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.0 {
            1 => "UPLOAD_BANDWIDTH",
            2 => "DOWNLOAD_BANDWIDTH",
            3 => "ROUND_TRIP_TIME",
            4 => "MAX_CONCURRENT_STREAMS",
            5 => "CURRENT_CWND",
            6 => "DOWNLOAD_RETRANS_RATE",
            7 => "INITIAL_WINDOW_SIZE",
            8 => "CLIENT_CERTIFICATE_VECTOR_SIZE",
            other => return write!(f, "setting {other}"),
        })
    }
}

impl Settings {
    /// The value of `id`, if it is set.
    #[must_use]
    pub fn value(&self, id: SettingId) -> Option<u32> {
        self.entries
            .iter()
            .find(|entry| entry.id == id)
            .map(|entry| entry.value)
    }

    /// Checks what is known from the head alone. Flags without a meaning are ignored.
    pub(crate) fn check(head: ControlHead) -> Result<(), FrameError> {
        head.expect_at_least(Kind::Settings, COUNT_LEN)
    }

    /// Reads the payload after `head`, at least 4 bytes; entries past `limit` are ignored.
    ///
    /// The time to find repeated IDs grows with the square of `limit`, so `limit` should be small.
    pub(crate) fn decode(
        version: Version,
        head: ControlHead,
        mut payload: Bytes,
        limit: usize,
    ) -> Result<Self, FrameError> {
        let (count, found) = (payload.get_u32(), head.len);
        // In 64 bits, so that a count of 2^32 - 1 does not wrap around.
        if COUNT_LEN as u64 + ENTRY_LEN as u64 * u64::from(count) != found as u64 {
            return Err(FrameError::SettingsCount { count, found });
        }
        let looked_at = (count as usize).min(limit);
        let mut entries: Vec<Setting> = Vec::with_capacity(looked_at);
        for _ in 0..looked_at {
            let [a, b, c, d] = payload.get_u32().to_be_bytes();
            let (flags, id) = match version {
                Version::V2 => (d, u32::from_le_bytes([a, b, c, 0])),
                Version::V3 | Version::V31 => (a, u32::from_be_bytes([0, b, c, d])),
            };
            let (id, value) = (SettingId(id), payload.get_u32());
            // The spec allows each ID once; the first entry of an ID counts.
            if entries.iter().all(|entry| entry.id != id) {
                entries.push(Setting { id, flags, value });
            }
        }
        Ok(Self {
            clear: head.flags & FLAG_CLEAR != 0,
            entries,
            ignored: count as usize - looked_at,
        })
    }

    /// Appends the whole frame to `out`, with ascending IDs and each ID once, because peers require it (Chromium ends the
    /// session otherwise).
    ///
    /// # Panics
    ///
    /// If the frame is longer than a head can announce.
    pub fn encode(&self, version: Version, out: &mut BytesMut) {
        if self.entries.is_sorted_by(|a, b| a.id < b.id) {
            return Self::put(version, self.clear, &self.entries, out);
        }
        let mut sorted = self.entries.clone();
        sorted.sort_by_key(|entry| entry.id); // stable: the first of an id stays first
        sorted.dedup_by_key(|entry| entry.id);
        Self::put(version, self.clear, &sorted, out);
    }

    fn put(version: Version, clear: bool, entries: &[Setting], out: &mut BytesMut) {
        let flags = if clear { FLAG_CLEAR } else { 0 };
        let len = COUNT_LEN + ENTRY_LEN * entries.len();
        ControlHead::new(version, Kind::Settings, flags, len).encode(out);
        out.put_u32(entries.len() as u32);
        for entry in entries {
            let id = entry.id.0 & SettingId::MASK;
            let word = match version {
                Version::V2 => id.swap_bytes() | u32::from(entry.flags),
                Version::V3 | Version::V31 => u32::from(entry.flags) << 24 | id,
            };
            out.put_u32(word);
            out.put_u32(entry.value);
        }
    }
}
