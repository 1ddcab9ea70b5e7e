//! Counters of an endpoint.

/// Counters of one endpoint since its creation.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TcpStats {
    /// Segments sent, of any kind.
    pub segments_sent: u64,
    /// Segments received.
    pub segments_received: u64,
    /// Bytes of all sent packets, including IP headers.
    pub ip_bytes_sent: u64,
    /// Retransmitted segments with payload or FIN, including probes.
    pub retransmits: u64,
    /// Retransmitted SYNs and SYN-ACKs.
    pub syn_retransmits: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Window reductions after a loss that acknowledgements revealed.
    pub recoveries: u64,
    /// Segments that RACK or duplicate acknowledgements marked as lost.
    pub losses_detected: u64,
    /// Expiries of RACK's reordering timer.
    pub reorder_timeouts: u64,
    /// Reductions that were undone.
    pub undos: u64,
    /// Zero-window probes.
    pub window_probes: u64,
    /// Window reductions after idle time.
    pub idle_restarts: u64,
    /// Acknowledgements that waited for the delayed-ACK timer.
    pub delayed_acks: u64,
}
