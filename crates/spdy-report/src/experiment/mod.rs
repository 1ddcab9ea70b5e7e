//! Reports of an experiment: one HTML file that needs no network and no script, and its figures as files for papers.
//!
//! ```text
//! rows of a store ──► data.rs ──► sections.rs ─┬─ tables.rs        ratios, wire, headers, validity
//!                     cells,          │        ├─ main_effects.rs  means at each level of a factor
//!                     factors,        │        ├─ scatter.rs       a protocol against the first, with the midline
//!                     trials          │        ├─ lines.rs         times over a factor
//!                                     │        ├─ heat.rs          ratios over two factors
//!                                     │        ├─ distribution.rs  share of the cells that are loaded by a time
//! trial_waterfalls.rs: median runs ───┤        ├─ wire.rs          connections, packets, bytes, heads
//!           with waterfalls           │        ├─ validity.rs      complete and incomplete loads
//!                                     │        └─ real_runs.rs     runs in real time, and their validity
//!                                     ▼
//! conditions.rs, filter.rs ──►     page.rs ──► HTML, or one file per figure
//! ```
//!
//! A *trial* is a set of cells that differ only in the protocol; protocols are compared within it. A factor is drawn as an axis if
//! all its levels are numbers with a unit, else as names side by side.

mod conditions;
mod data;
mod distribution;
mod filter;
mod heat;
mod lines;
mod main_effects;
mod page;
mod real_run_row;
mod real_runs;
mod scatter;
mod sections;
mod tables;
mod trial_waterfalls;
mod validity;
mod wire;

pub use page::{FigureFile, figures, render};
pub use trial_waterfalls::{TrialWaterfalls, again};
