//! The states of a connection (RFC 9293 §3.3.2).

/// Where a connection stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Sent a SYN.
    SynSent,
    /// Answered a SYN.
    SynReceived,
    /// Open both ways.
    Established,
    /// Sent FIN.
    FinWait1,
    /// Its FIN is acknowledged; the peer still sends.
    FinWait2,
    /// Both sent FIN at once; ours is not acknowledged.
    Closing,
    /// The peer sent FIN; we still send.
    CloseWait,
    /// And now so did we.
    LastAck,
    /// Both done; answers a repeated FIN.
    TimeWait,
    /// Gone.
    Closed,
}

impl State {
    /// After our FIN was queued.
    pub(super) fn after_close(self) -> Self {
        match self {
            Self::Established => Self::FinWait1,
            Self::CloseWait => Self::LastAck,
            other => other,
        }
    }

    /// After our FIN was acknowledged.
    pub(super) fn after_fin_acked(self) -> Self {
        match self {
            Self::FinWait1 => Self::FinWait2,
            Self::Closing => Self::TimeWait,
            Self::LastAck => Self::Closed,
            other => other,
        }
    }

    /// After the peer's FIN came.
    pub(super) fn after_peer_fin(self) -> Self {
        match self {
            Self::Established => Self::CloseWait,
            Self::FinWait1 => Self::Closing,
            Self::FinWait2 => Self::TimeWait,
            other => other,
        }
    }

    /// Whether the handshake is over and the connection is not.
    #[must_use]
    pub fn is_synchronised(self) -> bool {
        !matches!(
            self,
            Self::Listen | Self::SynSent | Self::SynReceived | Self::Closed
        )
    }
}
