//! What an endpoint counted.

/// Counters of one endpoint since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TcpStats {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments that came.
    pub segments_received: u64,
    /// Bytes of all packets sent, IP heads included.
    pub ip_bytes_sent: u64,
    /// Segments with payload or FIN that were sent again, probes included.
    pub retransmits: u64,
    /// SYNs and SYN-ACKs sent again.
    pub syn_retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Times that the window was reduced for a loss found by acknowledgements.
    pub recoveries: u64,
    /// Segments that RACK or duplicate acknowledgements found lost.
    pub losses_detected: u64,
    /// Expiries of RACK's reordering timer.
    pub reorder_timeouts: u64,
    /// Reductions that were taken back as needless.
    pub undos: u64,
    /// Zero-window probes.
    pub window_probes: u64,
    /// Times that the window was cut after idleness.
    pub idle_restarts: u64,
    /// Acknowledgements that waited for the delayed-ACK timer.
    pub delayed_acks: u64,
}
