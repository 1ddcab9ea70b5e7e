//! Fetches the whole resource when a client requests a part from the first byte: within a credit, and not where it was useless.

pub(crate) mod backoff;
pub(crate) mod credit;
pub(crate) mod request_whole;
