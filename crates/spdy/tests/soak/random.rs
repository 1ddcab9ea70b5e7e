//! Random numbers with a seed.

/// A linear congruential generator (Knuth's constants), so that a seed determines the whole run.
#[derive(Clone, Copy)]
pub(crate) struct TestRandom(pub(crate) u64);

impl TestRandom {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }

    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub(crate) fn fork(&mut self) -> Self {
        Self(self.below(u64::from(u32::MAX)))
    }

    /// Most bodies are small, some do not fit a window.
    pub(crate) fn length(&mut self) -> u64 {
        match self.below(20) {
            0..12 => self.below(2_000),
            12..19 => self.below(30_000),
            _ => self.below(200_000),
        }
    }
}
