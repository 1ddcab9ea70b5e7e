//! Header blocks: the pairs, the rules for names and values, and which values may be compressed together.

pub(crate) mod block_rules;
pub mod header_block;
pub mod public_headers;
pub mod secrets;
pub(crate) mod value_history;
