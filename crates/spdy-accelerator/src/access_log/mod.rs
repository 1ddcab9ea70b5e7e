//! The access log: the formats of a line, and the file that a separate thread writes.
//!
//! ```text
//! request ── combined.rs, json.rs: a line ──▶ lines.rs: bounded queue ──▶ writer.rs: thread ──▶ file
//! ```

mod combined;
pub mod json;
pub(crate) mod lifecycle;
pub(crate) mod lines;
mod writer;
