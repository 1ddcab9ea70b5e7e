//! One endpoint of a TCP connection without I/O, modelled on Linux.
//!
//! ```text
//!           write, close                          read
//!                |                                  ^
//!  endpoint      v                                  |        states, public methods, order of segments
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
//! The *sender* half has the sent data and decides when more may be sent. The *receiver* half has the received data and decides about
//! acknowledgements. The endpoint opens and closes them. Both halves do what Linux does by default, described by RFC where there is
//! one; [`TcpConfig`] has the features of each era.
//!
//! Not modelled, because they make no difference on these links or did not exist on the networks of the experiments: ECN, path MTU
//! discovery, TCP Fast Open, pacing, segmentation offload, autocorking, Nagle's algorithm (always off), compressed SACKs, keep-alive,
//! and the minute of TIME_WAIT (an endpoint there responds, but has no timer).
//!
//! The methods of `Sender` are in ten files, in the order of Linux's `tcp_input.c`: each file is one of its mechanisms, and all of
//! them work on the same state. `jiffies` is the clock of all timers.

mod config;
mod congestion;
mod endpoint;
mod handshake;
mod jiffies;
mod receive;
mod recovery;
mod send;
mod state;
mod stats;

pub use config::{CongestionControl, LossDetection, TcpConfig};
pub use endpoint::Tcp;
pub use state::State;
pub use stats::TcpStats;
