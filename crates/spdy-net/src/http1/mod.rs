//! HTTP/1.1 over hyper, and upgrades of its connections.

mod exchange;
pub mod upgrade;

pub(crate) use exchange::{
    Http1Client, MIN_BUFFER_BYTES, check_size, exchange_error, in_origin_form, serve,
};
