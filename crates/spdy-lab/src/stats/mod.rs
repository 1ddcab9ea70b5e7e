//! Statistics over many loads.
//!
//! ```text
//! times of runs ──► median             what a cell takes
//!               ──► modes              whether the median is meaningful: two heaps have no middle
//! two cells     ──► bootstrap          their ratio, and between what it may lie
//!               ──► effect             how often one is faster than the other
//!               ──► comparison         less, more, as good as equal, or not decided
//! cells in a row──► line               a slope: round trips
//! ```
//!
//! Page load times have two heaps, long tails and few runs, so nothing here takes them for normal. Resampling has a seed:
//! the same runs give the same interval.

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
