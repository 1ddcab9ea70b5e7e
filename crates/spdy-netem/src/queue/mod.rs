//! The queue before the bottleneck.
//!
//! A drop-tail queue decides about a packet at its arrival: it has room, or it drops the packet. [`CoDel`](codel) and
//! [`FQ-CoDel`](fq_codel) decide when the link is free for the next packet, so their packets wait until then ([`managed`]).

pub mod codel;
pub mod config;
pub mod drop_tail;
pub mod fifo;
pub mod flow;
pub mod fq_codel;
pub mod managed;

pub use config::{QueueConfig, QueueLimit};
pub use drop_tail::DropTail;
pub use fifo::{Ticket, WaitingPacket};
pub use flow::FlowKey;
pub use managed::ManagedQueue;
