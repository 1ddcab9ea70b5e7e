//! Lets sockets of this program set their initial congestion window.
//!
//! Linux has no such socket option for programs, only for BPF. So a BPF program of a few instructions is attached to the control
//! group in which this process runs. It handles one option number that the system does not use, TCP_BPF_IW, and passes all others
//! on. The kernel removes it when the process ends. `spdy-net-core/src/congestion/` decides about the windows.
//!
//! Attaching needs root, or CAP_BPF, CAP_NET_ADMIN and version 2 of control groups.

mod attach;
mod capabilities;
mod control_group;
mod program;

pub(crate) use attach::InitialWindowOption;
