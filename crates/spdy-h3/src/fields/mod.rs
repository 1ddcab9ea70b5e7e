//! Header fields: message heads and trailers as field lists.

mod message;

pub(crate) use message::{
    content_length, decode_trailers, encode_request, encode_response, encode_trailers, request,
    response,
};
