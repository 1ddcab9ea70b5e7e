//! Options of QUIC, for HTTP/3.

/// How the congestion window grows and falls.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Congestion {
    /// RFC 9438, without HyStart: slow start ends with the first loss.
    #[default]
    Cubic,
    /// RFC 9002 §7.
    NewReno,
}

/// Options of QUIC, below HTTP/3.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub struct QuicOptions {
    /// Congestion control of what this side sends.
    pub congestion: Congestion,
    /// Datagrams of 1,200 bytes that may be sent before the first acknowledgement, at least 2. Default 10 (RFC 9002 §7.2), as in
    /// TCP (RFC 6928).
    pub initial_window: u32,
    /// Seed of all randomness that can affect the length or the time of a packet; `None`: random.
    pub seed: Option<u64>,
}

impl Default for QuicOptions {
    fn default() -> Self {
        Self {
            congestion: Congestion::default(),
            initial_window: 10,
            seed: None,
        }
    }
}
