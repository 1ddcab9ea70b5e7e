//! Heads, bodies and trailers of one exchange, in both directions.

pub(crate) mod receive;
pub(crate) mod send;
