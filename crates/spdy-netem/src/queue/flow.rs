//! Which packets are of one flow.

/// Identity of a flow: packets of one connection and direction have the same key. The driver of a path derives it from what it knows
/// about a packet.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct FlowKey(u64);

impl FlowKey {
    /// The flow with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The flow with these bytes of headers: protocol, addresses and ports.
    #[must_use]
    pub fn of_headers(bytes: impl IntoIterator<Item = u8>) -> Self {
        // FNV-1a, 64 bits.
        let hash = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, hash))
    }

    /// The queue of this flow, of `queues`. It depends on no seed: a network without random loss or jitter is the same with every seed.
    #[must_use]
    pub const fn queue_of(self, queues: usize) -> usize {
        // The last steps of SplitMix64: every bit of the key changes half the bits of the result.
        let mut mixed = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % queues as u64) as usize // below `queues`
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_spread_over_all_queues() {
        let mut counts = vec![0; 64];
        for number in 0..6_400 {
            counts[FlowKey::new(number).queue_of(64)] += 1;
        }
        assert!(
            counts.iter().all(|count| (50..150).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn headers_in_another_order_are_another_flow() {
        assert_ne!(
            FlowKey::of_headers([6, 1, 2]),
            FlowKey::of_headers([6, 2, 1])
        );
        assert_eq!(
            FlowKey::of_headers([6, 1, 2]),
            FlowKey::of_headers([6, 1, 2])
        );
    }
}
