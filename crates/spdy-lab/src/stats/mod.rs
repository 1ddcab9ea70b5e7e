//! Statistics over many loads.
//!
//! ```text
//! times of runs ──► median             the time of a cell
//!               ──► modes              whether the median is meaningful: two modes have no middle
//! two cells     ──► bootstrap          their ratio, with its interval
//!               ──► effect             how often one is faster than the other
//!               ──► comparison         less, more, equal within a margin, or undecided
//! cells in a row──► line               a slope: round trips
//! ```
//!
//! Page load times have two modes, long tails and few runs, so no statistic assumes a normal distribution. Resampling has a seed: the
//! same runs have the same interval.

mod bootstrap;
mod comparison;
mod effect;
mod line;
mod median;
mod modes;

pub use bootstrap::{Bootstrap, Estimate};
pub use comparison::{Comparison, Difference, MIN_RUNS};
pub use effect::{Effect, Magnitude};
pub use line::Line;
pub use median::median;
pub use modes::Modes;
