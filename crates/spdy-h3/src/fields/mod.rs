//! Header fields: message heads and trailers as field lists, and their encoding as header blocks.

mod message;
pub(crate) mod qpack;
mod static_table;

pub(crate) use message::{
    content_length, decode_trailers, encode_request, encode_response, encode_trailers, request,
    response,
};
