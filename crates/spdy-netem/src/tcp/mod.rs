//! One endpoint of a TCP connection, sans-IO, as Linux would behave.
//!
//! ```text
//!           write, close                          read
//!                |                                  ^
//!  endpoint      v                                  |        states, the public methods, what goes next
//!  ---------------------------------------------------------
//!  send/                                        receive/
//!    sender, send_buffer, scoreboard              receiver
//!    transmit, persist                            reassembly
//!  recovery/                                      delayed_ack
//!    ack -> sack, rack, fast_recovery, undo       autotune
//!    timers: rto, tlp
//!  congestion/
//!    window, algorithm: cubic, hystart
//!  ---------------------------------------------------------
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
//!
//! The methods of `Sender` stand in ten files, in the order of Linux's `tcp_input.c`: each file is one of its
//! mechanisms, and all of them work on the same state.

mod config;
mod congestion;
mod endpoint;
mod handshake;
mod receive;
mod recovery;
mod send;
mod state;
mod stats;

pub use config::{CongestionControl, LossDetection, TcpConfig};
pub use endpoint::Tcp;
pub use state::State;
pub use stats::TcpStats;
