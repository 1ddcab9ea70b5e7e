//! Derives a seed for each source of randomness of a run from the run's seed, by name.
//!
//! A new source therefore does not change the random numbers of another: a lossy resolver, for example, changes no earlier packet
//! loss.

/// The seed of `name` under `seed`.
///
/// FNV-1a over the name, then the finisher of SplitMix64: short names and neighbouring seeds have distant results.
#[must_use]
pub fn derive(seed: u64, name: &str) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in name.bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(seed ^ mix(hash))
}

/// SplitMix64's step: a bijection in which every bit affects all bits.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_neighbouring_seeds_give_other_seeds() {
        let mut all: Vec<u64> = (0..100)
            .flat_map(|seed| ["path", "dns", "run/1", "run/2"].map(|name| derive(seed, name)))
            .collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 400);
    }

    #[test]
    fn a_seed_is_the_same_on_every_machine() {
        assert_eq!(derive(1, "path"), 0x1e8a_f5bf_011f_8c50);
    }
}
