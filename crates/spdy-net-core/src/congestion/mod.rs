//! Starts connections with the congestion window that earlier ones from the same network have reached.
//!
//! ```text
//!  accept ──▶ RememberedWindows::start ◀── WindowMemory: half of what the network has reached
//!                    │                          ▲
//!                    ▼                          │ window and retransmissions (CongestionSocket)
//!              SampledStream ── every 64 KiB, and at its end
//! ```
//!
//! A new connection may have ten packets in flight (RFC 6928). On a long or fast path it then needs several round trips to fill the path,
//! although the last connection of this client has shown what the path can take. `spdy-h3` does the same for QUIC.

mod congestion_socket;
mod memory;
mod remembered_windows;
mod sampled_stream;
#[cfg(target_os = "linux")]
mod socket_options;

pub use congestion_socket::{CongestionSocket, WindowState};
pub use memory::{
    DEFAULT_INITIAL_WINDOW, MAX_INITIAL_WINDOW, MAX_NETWORKS, WindowMemory, WindowSample,
};
pub use remembered_windows::RememberedWindows;
