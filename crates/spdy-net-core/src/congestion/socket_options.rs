//! Options of a TCP socket that socket2 does not have.

use std::os::fd::AsFd;

use nix::libc;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};

use super::memory::WindowSample;

/// A pacing rate that limits nothing, bytes a second. Any rate but the largest makes Linux pace the connection: in slow start, at two
/// windows a round trip.
const UNLIMITED_PACING: u64 = u64::MAX - 1;

/// TCP_BPF_IW of Linux's `bpf.h`. The system knows it only from BPF programs: one of them must handle it
/// (`spdy-accelerator/src/initial_window/`).
const TCP_BPF_IW: libc::c_int = 1001;

sockopt_impl!(
    /// The initial congestion window, packets.
    InitialWindow,
    SetOnly,
    libc::IPPROTO_TCP,
    TCP_BPF_IW,
    u32
);
sockopt_impl!(
    /// The largest rate at which packets are sent, bytes a second.
    MaxPacingRate,
    SetOnly,
    libc::SOL_SOCKET,
    libc::SO_MAX_PACING_RATE,
    u64
);
sockopt_impl!(
    /// State of the connection.
    TcpInfo,
    GetOnly,
    libc::IPPROTO_TCP,
    libc::TCP_INFO,
    libc::tcp_info
);

/// Sets the initial congestion window of a connection that has sent no data yet, and paces it, so that a large window is not one burst.
///
/// # Errors
///
/// No BPF program handles the option, or data was sent.
pub(super) fn set_initial_window(socket: &impl AsFd, packets: u32) -> nix::Result<()> {
    setsockopt(socket, InitialWindow, &packets)?;
    setsockopt(socket, MaxPacingRate, &UNLIMITED_PACING)
}

/// The present congestion window. `retransmissions` is the count at the previous sample, and becomes that of this one.
///
/// # Errors
///
/// The socket is not connected any more.
pub(super) fn sample(socket: &impl AsFd, retransmissions: &mut u32) -> nix::Result<WindowSample> {
    let info = getsockopt(socket, TcpInfo)?;
    let before = std::mem::replace(retransmissions, info.tcpi_total_retrans);
    Ok(WindowSample {
        window_packets: info.tcpi_snd_cwnd,
        has_losses: info.tcpi_total_retrans > before,
    })
}
