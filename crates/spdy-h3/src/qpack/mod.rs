//! QPACK: header blocks with a static and a dynamic table (RFC 9204), as two machines without I/O.
//!
//! ```text
//!   fields --encoder.rs--> field section (field_section.rs)   on the request's stream
//!              |  ^        inserts (instructions.rs)          on the encoder's stream
//!              |  `------- acknowledgments                    on the decoder's stream of the peer
//!              `-- indexing.rs: what may be in the table      unacknowledged.rs: what the peer may still need
//!
//!   decoder.rs: the other direction. A section that refers to an entry that has not arrived is blocked.
//! ```
//!
//! `compression/` connects the machines with QUIC.

mod decoder;
mod dynamic_table;
mod encoder;
mod field;
mod field_section;
mod indexing;
mod instructions;
mod primitives;
mod static_table;
mod unacknowledged;

pub(crate) use decoder::{Decoded, Decoder, MAX_BLOCKED_STREAMS};
pub(crate) use encoder::Encoder;
pub(crate) use field::{Field, section_len};
pub(crate) use field_section::SectionError;
pub(crate) use instructions::InstructionError;

/// Maximum capacity of a dynamic table, bytes: of the peer's encoder, in our SETTINGS, and of ours, if the peer allows as much.
///
/// As in nginx and as HTTP/2's default. Chromium and Firefox allow 64 KiB, which a server would then store for each connection.
pub(crate) const MAX_TABLE_BYTES: u64 = 4096;
