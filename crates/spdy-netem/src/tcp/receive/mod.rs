//! The receiving half: received data, and its acknowledgement.

pub(crate) mod autotune;
pub(crate) mod delayed_ack;
pub(crate) mod reassembly;
pub(crate) mod receiver;
