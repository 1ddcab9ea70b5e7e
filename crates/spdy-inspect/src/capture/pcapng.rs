//! The newer format of captures (draft-ietf-opsawg-pcapng): sections of blocks.
//!
//! ```text
//! block        type:32 | length:32 | body ... | length:32          length includes all fields
//!
//! 0x0a0d0d0a   section: byte-order magic:32 | version:32 | section length:64 | options
//! 1            interface: link:16 | 0:16 | snaplen:32 | options (9: unit of time, 14: offset in s)
//! 2, 6         packet: interface | time:64 | captured:32 | original:32 | bytes
//! 3            simple packet: original:32 | bytes
//! 10           secrets: type:32 (0x544c534b: a TLS key log) | length:32 | bytes
//! ```
//!
//! Blocks of other types are skipped.

use bytes::Bytes;

use crate::capture::byte_order::ByteOrder;
use crate::capture::record::{CaptureError, Record, Step};
use crate::limits::Limits;

/// The first bytes of a file, in either byte order.
pub(crate) const MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

pub(crate) const SECTION: u32 = 0x0a0d_0d0a;
pub(crate) const INTERFACE: u32 = 1;
const OLD_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
pub(crate) const PACKET: u32 = 6;
pub(crate) const SECRETS: u32 = 10;
pub(crate) const TLS_KEY_LOG: u32 = 0x544c_534b;
pub(crate) const OPTION_UNIT: u16 = 9;
const OPTION_OFFSET: u16 = 14;
/// Type, and the length twice.
pub(crate) const BLOCK_OVERHEAD: usize = 12;

/// The state of a section.
#[derive(Debug, Default)]
pub(crate) struct Pcapng {
    order: ByteOrder,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u32,
    snap_bytes: u32,
    /// Nanoseconds are ticks * 10^9 / ticks_per_second.
    ticks_per_second: u64,
    offset_seconds: i64,
}

impl Interface {
    fn unix_nanos(self, ticks: u64) -> u64 {
        let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks_per_second.max(1));
        let offset = i128::from(self.offset_seconds) * 1_000_000_000;
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        u64::try_from(nanos.saturating_add(offset).max(0)).unwrap_or(u64::MAX)
    }
}

impl Pcapng {
    pub(crate) fn step(
        &mut self,
        at: u64,
        input: &[u8],
        limits: &Limits,
    ) -> Result<Step, CaptureError> {
        if input.starts_with(&MAGIC) {
            let Some(magic) = input.get(8..12) else {
                return Ok(Step::Wait);
            };
            self.order = match magic {
                [0x1a, 0x2b, 0x3c, 0x4d] => ByteOrder::Big,
                [0x4d, 0x3c, 0x2b, 0x1a] => ByteOrder::Little,
                _ => {
                    return Err(CaptureError::Block {
                        at,
                        kind: SECTION,
                        what: "no byte-order magic",
                    });
                }
            };
            self.interfaces.clear();
        }
        let (Some(kind), Some(len)) = (self.order.u32(input, 0), self.order.u32(input, 4)) else {
            return Ok(Step::Wait);
        };
        let wrong = |what| CaptureError::Block { at, kind, what };
        let len = len as usize;
        if len > limits.record_bytes {
            let (found, limit) = (len as u64, limits.record_bytes as u64);
            return Err(CaptureError::RecordLength { at, found, limit });
        }
        if len < BLOCK_OVERHEAD || !len.is_multiple_of(4) {
            return Err(wrong("its length is under 12 or not a multiple of 4"));
        }
        let Some(block) = input.get(..len) else {
            return Ok(Step::Wait);
        };
        if self.order.u32(block, len - 4) != Some(len as u32) {
            return Err(wrong("the length at its end differs"));
        }
        let body = &block[8..len - 4];
        let record = match kind {
            INTERFACE => {
                if self.interfaces.len() >= limits.interfaces {
                    let limit = limits.interfaces;
                    return Err(CaptureError::TooManyInterfaces { at, limit });
                }
                let interface = self
                    .interface(body)
                    .ok_or_else(|| wrong("too short for an interface"))?;
                self.interfaces.push(interface);
                None
            }
            PACKET | OLD_PACKET => Some(self.packet(at, kind, body)?),
            SIMPLE_PACKET => {
                let original = self
                    .order
                    .u32(body, 0)
                    .ok_or_else(|| wrong("too short for a packet"))?;
                let interface = self.described(at, 0)?;
                let room = body.len() - 4;
                let captured_len = match interface.snap_bytes {
                    0 => original,
                    snap => original.min(snap),
                };
                let captured_len = (captured_len as usize).min(room);
                Some(Record::Packet {
                    unix_nanos: 0,
                    link: interface.link,
                    bytes: Bytes::copy_from_slice(&body[4..4 + captured_len]),
                    cut: original as usize > captured_len,
                })
            }
            SECRETS => {
                let (Some(of), Some(secret_len)) =
                    (self.order.u32(body, 0), self.order.u32(body, 4))
                else {
                    return Err(wrong("too short for secrets"));
                };
                let secrets = body[8..]
                    .get(..secret_len as usize)
                    .ok_or_else(|| wrong("its secrets exceed the block"))?;
                (of == TLS_KEY_LOG).then(|| Record::Secrets(Bytes::copy_from_slice(secrets)))
            }
            _ => None,
        };
        Ok(Step::Consumed(len, record))
    }

    fn described(&self, at: u64, interface: u32) -> Result<Interface, CaptureError> {
        let found = self.interfaces.get(interface as usize).copied();
        found.ok_or(CaptureError::Interface {
            at,
            found: interface,
            described: self.interfaces.len(),
        })
    }

    fn packet(&self, at: u64, kind: u32, body: &[u8]) -> Result<Record, CaptureError> {
        let wrong = |what| CaptureError::Block { at, kind, what };
        let short = || wrong("too short for a packet");
        let interface = match kind {
            PACKET => self.order.u32(body, 0),
            _ => self.order.u16(body, 0).map(u32::from),
        };
        let interface = self.described(at, interface.ok_or_else(short)?)?;
        let word = |at| self.order.u32(body, at).ok_or_else(short);
        let (high, low, captured_len, original) = (word(4)?, word(8)?, word(12)?, word(16)?);
        let bytes = body
            .get(20..)
            .and_then(|rest| rest.get(..captured_len as usize))
            .ok_or_else(|| wrong("its packet exceeds the block"))?;
        Ok(Record::Packet {
            unix_nanos: interface.unix_nanos(u64::from(high) << 32 | u64::from(low)),
            link: interface.link,
            bytes: Bytes::copy_from_slice(bytes),
            cut: original > captured_len,
        })
    }

    fn interface(&self, body: &[u8]) -> Option<Interface> {
        let mut interface = Interface {
            link: u32::from(self.order.u16(body, 0)?),
            snap_bytes: self.order.u32(body, 4)?,
            ticks_per_second: 1_000_000,
            offset_seconds: 0,
        };
        let mut at = 8;
        while let (Some(code), Some(len)) = (self.order.u16(body, at), self.order.u16(body, at + 2))
        {
            let len = usize::from(len);
            let Some(value) = body.get(at + 4..at + 4 + len) else {
                break;
            };
            match (code, value) {
                (0, _) => break,
                // The top bit selects powers of two. A unit that does not fit 64 bits is invalid.
                (OPTION_UNIT, [unit]) => {
                    let base: u64 = if unit & 0x80 == 0 { 10 } else { 2 };
                    let power = base.checked_pow(u32::from(unit & 0x7f));
                    interface.ticks_per_second = power.unwrap_or(u64::MAX);
                }
                (OPTION_OFFSET, value) => {
                    if let Ok(eight) = <[u8; 8]>::try_from(value) {
                        interface.offset_seconds = match self.order {
                            ByteOrder::Big => i64::from_be_bytes(eight),
                            ByteOrder::Little => i64::from_le_bytes(eight),
                        };
                    }
                }
                _ => {}
            }
            at += 4 + len.next_multiple_of(4);
        }
        Some(interface)
    }
}
