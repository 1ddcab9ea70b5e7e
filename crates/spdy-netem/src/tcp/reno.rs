//! Reno (RFC 5681): half on a loss, a segment a round trip.

/// The threshold after a loss at window `cwnd`.
pub(super) fn reduced_threshold(cwnd: u32) -> u32 {
    (cwnd / 2).max(2)
}
