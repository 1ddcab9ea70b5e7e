//! The older format of captures (draft-ietf-opsawg-pcap).
//!
//! ```text
//! file    magic:32 | major:16 minor:16 | zone:32 | sigfigs:32 | snaplen:32 | fcs:4 .. link:28
//! record  seconds:32 | fraction:32 | captured:32 | original:32 | captured bytes
//! ```

use bytes::Bytes;

use crate::capture::byte_order::ByteOrder;
use crate::capture::record::{CaptureError, Record, Step};
use crate::limits::Limits;

const FILE_HEAD: usize = 24;
const RECORD_HEAD: usize = 16;

/// A file of one byte order and one unit of time.
#[derive(Debug)]
pub(crate) struct Pcap {
    order: ByteOrder,
    nanos_per_tick: u64,
    /// `None` before the file header.
    link: Option<u32>,
}

impl Pcap {
    /// The format with this magic.
    pub(crate) fn of_magic(magic: [u8; 4]) -> Option<Self> {
        use ByteOrder::{Big, Little};
        let (order, nanos_per_tick) = match magic {
            [0xa1, 0xb2, 0xc3, 0xd4] => (Big, 1000),
            [0xd4, 0xc3, 0xb2, 0xa1] => (Little, 1000),
            [0xa1, 0xb2, 0x3c, 0x4d] => (Big, 1),
            [0x4d, 0x3c, 0xb2, 0xa1] => (Little, 1),
            _ => return None,
        };
        Some(Self {
            order,
            nanos_per_tick,
            link: None,
        })
    }

    pub(crate) fn step(
        &mut self,
        at: u64,
        input: &[u8],
        limits: &Limits,
    ) -> Result<Step, CaptureError> {
        let Some(link) = self.link else {
            let head = (input.len() >= FILE_HEAD).then(|| self.order.u32(input, 20));
            let Some(word) = head.flatten() else {
                return Ok(Step::Wait);
            };
            self.link = Some(word & 0x0fff_ffff);
            return Ok(Step::Consumed(FILE_HEAD, None));
        };
        let word = |at| self.order.u32(input, at);
        let (Some(seconds), Some(fraction), Some(captured_len), Some(original)) =
            (word(0), word(4), word(8), word(12))
        else {
            return Ok(Step::Wait);
        };
        let captured_len = captured_len as usize;
        if captured_len > limits.record_bytes {
            return Err(CaptureError::RecordLength {
                at,
                found: captured_len as u64,
                limit: limits.record_bytes as u64,
            });
        }
        let Some(bytes) = input.get(RECORD_HEAD..RECORD_HEAD + captured_len) else {
            return Ok(Step::Wait);
        };
        let nanos = u64::from(fraction) * self.nanos_per_tick;
        let record = Record::Packet {
            unix_nanos: u64::from(seconds) * 1_000_000_000 + nanos,
            link,
            bytes: Bytes::copy_from_slice(bytes),
            cut: original as usize > captured_len,
        };
        Ok(Step::Consumed(RECORD_HEAD + captured_len, Some(record)))
    }
}
