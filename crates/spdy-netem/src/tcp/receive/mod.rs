//! The receiving half: what came, and when it must be acknowledged.

pub(crate) mod autotune;
pub(crate) mod delayed_ack;
pub(crate) mod reassembly;
pub(crate) mod receiver;
