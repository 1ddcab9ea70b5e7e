//! Records the congestion window of a connection at its end.

use std::net::IpAddr;

use spdy_net_core::congestion::{RememberedWindows, WindowSample};

use crate::quic::transport::DATAGRAM_BYTES;

/// A server's connection whose window is recorded when this is dropped.
pub(crate) struct RecordedWindows {
    windows: RememberedWindows,
    client: IpAddr,
    connection: quinn::Connection,
}

impl RecordedWindows {
    pub(super) fn new(windows: RememberedWindows, connection: quinn::Connection) -> Self {
        Self {
            windows,
            client: connection.remote_address().ip(),
            connection,
        }
    }
}

impl Drop for RecordedWindows {
    fn drop(&mut self) {
        if self.connection.remote_address().ip() != self.client {
            return; // the client has moved, and the window is of its new path
        }
        let path = self.connection.stats().path;
        let packets = path.cwnd / u64::from(DATAGRAM_BYTES);
        let sample = WindowSample {
            window_packets: u32::try_from(packets).unwrap_or(u32::MAX),
            has_losses: path.lost_packets > 0,
        };
        self.windows.record(self.client, sample);
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use spdy::runtime::{SharedRuntime, TokioRuntime};

    use super::*;
    use crate::loopback::pair_with;

    #[tokio::test]
    async fn connection_starts_with_the_window_that_an_earlier_one_has_reached() {
        let windows = RememberedWindows::new(SharedRuntime::new(TokioRuntime::start()));
        let window_of_new_connection = async || {
            let (_client, server) = pair_with(Some(windows.clone())).await;
            server.stats().path.cwnd / u64::from(DATAGRAM_BYTES)
        };
        assert!(window_of_new_connection().await < 40);
        let reached = WindowSample {
            window_packets: 80,
            has_losses: false,
        };
        windows.record(Ipv4Addr::LOCALHOST.into(), reached);
        assert!(window_of_new_connection().await >= 40);
    }
}
