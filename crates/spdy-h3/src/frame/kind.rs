//! Frame types (RFC 9114 §11.2.1, RFC 9218 §7.2).

pub(crate) const DATA: u64 = 0x0;
pub(crate) const HEADERS: u64 = 0x1;
pub(crate) const CANCEL_PUSH: u64 = 0x3;
pub(crate) const SETTINGS: u64 = 0x4;
pub(crate) const PUSH_PROMISE: u64 = 0x5;
pub(crate) const GOAWAY: u64 = 0x7;
pub(crate) const MAX_PUSH_ID: u64 = 0xd;
pub(crate) const PRIORITY_UPDATE: u64 = 0xf_0700;
/// The same for a push.
pub(crate) const PRIORITY_UPDATE_OF_PUSH: u64 = 0xf_0701;
/// Types of HTTP/2 without an equivalent here, which must not be used.
pub(crate) const HTTP2_ONLY: [u64; 4] = [0x2, 0x6, 0x8, 0x9];
