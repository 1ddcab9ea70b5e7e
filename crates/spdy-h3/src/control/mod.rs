//! The streams without an exchange: the control stream of each side, and other streams that a peer may open (RFC 9114 §6.2).

mod control_stream;
mod critical_stream;
mod qpack_streams;
mod uni_streams;

pub(crate) use control_stream::{CONTROL_PRIORITY, ControlEvent, ControlState, OwnControlStream};
pub(crate) use critical_stream::critical_fault;
pub(crate) use uni_streams::read_uni_streams;
