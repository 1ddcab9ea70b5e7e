//! The zlib stream of header blocks: dictionary, inflate, and a deflate encoder that keeps secrets out of matches.

pub mod compress;
pub(crate) mod deflate_encoder;
pub mod dictionary;
pub(crate) mod huffman;
pub mod inflate;
pub(crate) mod match_table;
