//! The congestion window of Linux's TCP: options that socket2 does not have.

use std::io;

use nix::libc;
use nix::sys::socket::{getsockopt, setsockopt};
use nix::{getsockopt_impl, setsockopt_impl, sockopt_impl};
use tokio::net::TcpStream;

use super::congestion_socket::{CongestionSocket, WindowState};

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

impl CongestionSocket for TcpStream {
    /// Also paces the connection, so that a large window is not one burst. Fails unless a BPF program handles TCP_BPF_IW.
    fn set_initial_window(&self, packets: u32) -> io::Result<()> {
        setsockopt(self, InitialWindow, &packets)?;
        Ok(setsockopt(self, MaxPacingRate, &UNLIMITED_PACING)?)
    }

    fn window(&self) -> io::Result<WindowState> {
        let info = getsockopt(self, TcpInfo)?;
        Ok(WindowState {
            packets: info.tcpi_snd_cwnd,
            retransmissions: info.tcpi_total_retrans.into(),
        })
    }
}
