//! The states of a connection (RFC 9293 §3.3.2).

/// State of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Sent a SYN.
    SynSent,
    /// Responded to a SYN.
    SynReceived,
    /// Open in both directions.
    Established,
    /// Sent FIN.
    FinWait1,
    /// Its FIN is acknowledged; the peer still sends.
    FinWait2,
    /// Both sent FIN at the same time; ours is not acknowledged.
    Closing,
    /// The peer sent FIN; we still send.
    CloseWait,
    /// The peer sent FIN, and so did we.
    LastAck,
    /// Both have ended; responds to a repeated FIN.
    TimeWait,
    /// Ended.
    Closed,
}

impl State {
    /// The state after our FIN is queued.
    pub(super) fn after_close(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            other => other,
        }
    }

    /// The state after our FIN is acknowledged.
    pub(super) fn after_fin_acked(self) -> Self {
        match self {
            Self::FinWait1 => Self::FinWait2,
            Self::Closing => Self::TimeWait,
            Self::LastAck => Self::Closed,
            other => other,
        }
    }

    /// The state after the peer's FIN arrives.
    pub(super) fn after_peer_fin(self) -> Self {
        match self {
            Self::Established => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }

    /// True from the end of the handshake to the end of the connection.
    #[must_use]
    pub fn is_synchronised(self) -> bool {
        !matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed
        )
    }
}
