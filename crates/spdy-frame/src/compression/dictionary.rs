//! The preset dictionaries: plain text that each compression context starts with, as if it had been sent already
//! (SPDY/3.1 §2.6.10.1).
//!
//! They are constants of the protocol, stored as files so that no editor changes a byte. The dictionary of SPDY/2
//! ends with a NUL, which its draft does not print but every implementation includes. SPDY/3 and 3.1 share a dictionary
//! without a NUL at its end.

use crate::version::Version;

const V2: &[u8; 907] = include_bytes!("dictionary/v2.bin");
const V3: &[u8; 1423] = include_bytes!("dictionary/v3.bin");

/// The plain bytes of the dictionary of `version`.
#[must_use]
pub const fn dictionary(version: Version) -> &'static [u8] {
    match version {
        Version::V2 => V2,
        Version::V3 | Version::V31 => V3,
    }
}

/// Adler-32 of [`dictionary`]: the id in the first six bytes of a stream (RFC 1950 §2.2).
#[must_use]
pub const fn dictionary_id(version: Version) -> u32 {
    match version {
        Version::V2 => 0xdfa2_51b2,
        Version::V3 | Version::V31 => 0xe3c6_a7c2,
    }
}
