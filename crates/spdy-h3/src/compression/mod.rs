//! Header compression of a connection: QPACK's machines (`qpack/`) with the QUIC streams that they need.
//!
//! ```text
//!   request streams     header_compression.rs: encodes sections, and decodes them (section_reader.rs)
//!        |                    |
//!        |              qpack/encoder.rs, qpack/decoder.rs
//!        |                    |
//!   our encoder stream and decoder stream: instruction_stream.rs. The peer's are read by control/qpack_streams.rs.
//! ```

mod header_compression;
mod instruction_stream;
mod section_reader;

pub(crate) use header_compression::{HeaderCompression, PeerSettings};
pub(crate) use section_reader::SectionReader;
