//! A plan: pages, protocols, and factors with their levels; and its canonical text, which equal plans share.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use sha2::{Digest, Sha256};
use spdy_sim::options::RaceProtocol;

use crate::experiment::clock::Clock;
use crate::experiment::factor::Factor;

/// Maximum runs of a cell.
pub const MAX_RUNS: u32 = 100_000;
/// Maximum loads of an experiment. Each is a row, and a mistake in a list of levels may result in any number.
pub const MAX_LOADS: u64 = 1_000_000;
/// Maximum seed: JSON and SQL represent it exactly.
pub const MAX_SEED: u64 = (1 << 53) - 1;

/// A plan of measurements.
///
/// Pages are names here: the caller that runs the plan opens them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Plan {
    /// Name of the experiment.
    pub(crate) name: String,
    /// The seed of all randomness.
    pub(crate) seed: u64,
    /// Loads of each cell.
    pub(crate) runs: u32,
    /// Pages, by shipped names or paths.
    pub(crate) pages: Vec<String>,
    /// Protocols.
    pub(crate) protocols: Vec<RaceProtocol>,
    /// Levels of each factor of the plan.
    pub(crate) factors: BTreeMap<Factor, Vec<String>>,
}

impl Plan {
    /// Name of the experiment: letters, digits, `-`, `_` and `.`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The seed of all randomness.
    #[must_use]
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// Loads of each cell.
    #[must_use]
    pub const fn runs(&self) -> u32 {
        self.runs
    }

    /// Pages, as named in the plan.
    #[must_use]
    pub fn pages(&self) -> &[String] {
        &self.pages
    }

    /// Number of cells.
    #[must_use]
    pub fn len(&self) -> usize {
        let levels: usize = self.factors.values().map(Vec::len).product();
        self.pages.len() * self.protocols.len() * levels
    }

    /// True without cells; a parsed plan always has some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// True if any of its cells is loaded in real time.
    #[must_use]
    pub fn has_real_time(&self) -> bool {
        let clocks = self.factors.get(&Factor::Clock);
        clocks.is_some_and(|levels| levels.iter().any(|level| level == Clock::Real.name()))
    }

    /// The plan as a text that parses to it. Comments, spaces and the order of factors, which do not change a result, do not change
    /// this text either.
    #[must_use]
    pub fn canonical(&self) -> String {
        let Self {
            name,
            seed,
            runs,
            pages,
            protocols,
            factors,
        } = self;
        let protocols: Vec<_> = protocols
            .iter()
            .map(|protocol| protocol.name().to_owned())
            .collect();
        let mut text = format!("name = {}\nseed = {seed}\nruns = {runs}\n", quoted(name));
        for (key, values) in [("pages", pages), ("protocols", &protocols)] {
            let _ = writeln!(text, "{key} = {}", list(values)); // a String takes all
        }
        text.push_str("\n[factors]\n");
        for (factor, levels) in factors {
            let _ = writeln!(text, "{factor} = {}", list(levels));
        }
        text
    }

    /// SHA-256 of the [canonical](Self::canonical) text, in hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        hex(&Sha256::digest(self.canonical()))
    }
}

/// `bytes` in hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}"); // a String takes all
    }
    text
}

fn list(values: &[String]) -> String {
    let values: Vec<_> = values.iter().map(|value| quoted(value)).collect();
    format!("[{}]", values.join(", "))
}

/// A TOML string. The parser rejects control characters.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
