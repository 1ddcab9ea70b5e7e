//! Seeded randomness: an independent stream of random numbers for each use.
//!
//! A run has one seed, and each use of randomness has its own stream, named by a [`Purpose`]. So more packets on one link, or enabled
//! jitter, never change the random numbers of another use.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

/// The use of a stream. The discriminant is part of the seed: never renumber.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[repr(u64)]
pub enum Purpose {
    /// Loss of packets from the client.
    LossUp = 1,
    /// Loss of packets to the client.
    LossDown = 2,
    /// Jitter of packets from the client.
    JitterUp = 3,
    /// Jitter of packets to the client.
    JitterDown = 4,
}

/// A stream of random numbers, which depends only on a seed and a purpose.
#[derive(Clone, Debug)]
pub struct RandomStream(ChaCha8Rng);

impl RandomStream {
    /// The stream for `purpose` in the run with `seed`.
    #[must_use]
    pub fn new(seed: u64, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&(purpose as u64).to_le_bytes());
        key[16..28].copy_from_slice(b"spdy-netem/1");
        Self(ChaCha8Rng::from_seed(key))
    }

    /// A number in `0..bound`; 0 if `bound` is 0.
    ///
    /// Always draws once, so that the stream position does not depend on the result. The bias of the multiplication is below `bound`
    /// / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        let drawn = u128::from(self.0.next_u64());
        // The high half of a product of two 64-bit numbers fits 64 bits.
        ((drawn * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, purpose: Purpose) -> Vec<u64> {
        let mut chance = RandomStream::new(seed, purpose);
        (0..4).map(|_| chance.below(1_000_000)).collect()
    }

    #[test]
    fn a_stream_depends_on_seed_and_purpose() {
        assert_eq!(first(1, Purpose::LossUp), first(1, Purpose::LossUp));
        assert_ne!(first(1, Purpose::LossUp), first(2, Purpose::LossUp));
        assert_ne!(first(1, Purpose::LossUp), first(1, Purpose::LossDown));
    }

    #[test]
    fn numbers_stay_below_the_bound_and_reach_it() {
        let mut chance = RandomStream::new(7, Purpose::JitterUp);
        let drawn: Vec<_> = (0..1_000).map(|_| chance.below(4)).collect();
        assert_eq!(drawn.iter().max(), Some(&3));
        assert_eq!(drawn.iter().min(), Some(&0));
        assert_eq!(chance.below(0), 0);
    }
}
