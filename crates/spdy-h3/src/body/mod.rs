//! Heads, bodies and trailers on the stream of one exchange, in both directions.

pub(crate) mod receive;
pub(crate) mod send;
