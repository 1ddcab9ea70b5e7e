//! The papers whose claims are measured again.

use crate::claims::claim::Claim;
use crate::claims::papers::{belshe, cacm12, lulic, mineki, nsdi14, unm, whitepaper};

/// Every claim, paper by paper.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    let papers: [&'static [Claim]; 7] = [
        belshe::CLAIMS,
        whitepaper::CLAIMS,
        lulic::CLAIMS,
        unm::CLAIMS,
        mineki::CLAIMS,
        nsdi14::CLAIMS,
        cacm12::CLAIMS,
    ];
    papers.into_iter().flatten()
}
