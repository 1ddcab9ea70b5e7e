//! Response and request bodies: content codings, limits, sharing, and memory accounting.

pub mod body_memory;
pub(crate) mod call_messages;
pub(crate) mod call_streams;
pub mod content_coding;
pub mod decoder;
pub mod encoded_body;
pub mod encoder;
pub(crate) mod gzip_decoder;
pub(crate) mod limited_body;
pub(crate) mod range_body;
pub(crate) mod request_body;
pub mod shared_body;
pub mod stored_body;
