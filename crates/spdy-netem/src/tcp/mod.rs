//! One endpoint of a TCP connection, sans-IO, as Linux would behave.
//!
//! ```text
//!           write, close                          read
//!                |                                  ^
//!  endpoint      v                                  |        states, the doors, what goes next
//!  ---------------------------------------------------------
//!  sender    send_buffer -> scoreboard          reassembly     receiver
//!            cwnd, congestion, cubic, hystart         delayed_ack
//!            ack -> recovery, rack, undo        receive_window
//!            timers: rto, tlp, rack, persist    autotune
//!  ---------------------------------------------------------
//!                |                                  ^
//!                v  poll_transmit    handle_segment |
//! ```
//!
//! The *sender* half knows what was sent and when it may send more; the *receiver* half knows what
//! came and when it must say so; the endpoint opens and closes them. Both halves are what Linux does
//! by default, told by RFC where there is one; [`TcpConfig`] says which of it each era had.
//!
//! Left out, since no link here shows a difference or the seeds' networks had none: ECN, path MTU
//! discovery, TCP Fast Open, pacing, segmentation offload, autocorking, Nagle's algorithm (always
//! off), compressed SACKs, keep-alive, and the minute of TIME_WAIT (an endpoint there answers, but
//! holds no timer).

mod ack;
mod autotune;
mod config;
mod congestion;
mod cubic;
mod cwnd;
mod delayed_ack;
mod endpoint;
mod handshake;
mod hystart;
mod persist;
mod rack;
mod reassembly;
mod receiver;
mod recovery;
mod recovery_state;
mod rto;
mod rtt;
mod sacked;
mod scoreboard;
mod send_buffer;
mod sender;
mod state;
mod stats;
mod tlp;
mod transmit;
mod undo;

pub use config::{CongestionControl, LossDetection, TcpConfig};
pub use endpoint::Tcp;
pub use state::State;
pub use stats::TcpStats;
