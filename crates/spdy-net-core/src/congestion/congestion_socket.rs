//! A connection with a congestion window that can be read and set: TCP of Linux, or of virtual time.

use std::io;

use crate::network::Io;

/// A connection whose congestion window can be read and set.
pub trait CongestionSocket: Io {
    /// Sets the congestion window of a connection that has sent no data yet.
    ///
    /// # Errors
    ///
    /// The system does not support it, or data was sent.
    fn set_initial_window(&self, packets: u32) -> io::Result<()>;

    /// The present window.
    ///
    /// # Errors
    ///
    /// The system does not support it.
    fn window(&self) -> io::Result<WindowState>;
}

/// The state of a connection's congestion control.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct WindowState {
    /// The congestion window, packets.
    pub packets: u32,
    /// Packets that were sent again, since the start of the connection.
    pub retransmissions: u64,
}

#[cfg(not(target_os = "linux"))]
impl CongestionSocket for tokio::net::TcpStream {
    fn set_initial_window(&self, _: u32) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    fn window(&self) -> io::Result<WindowState> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
