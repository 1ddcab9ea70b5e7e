//! What papers said of SPDY, run again.
//!
//! ```text
//! lulic/, whitepaper.rs, ..     Claim: what was said, as data; under which conditions; how to measure it
//!        │
//!   bench.rs                    loads in virtual time: pages x settings x runs, the two ways in pairs
//!        │
//!   measured.rs                 MeasuredResult: figures with their intervals
//!        │
//!   verdict.rs                  Verdict: from Expected and Measured alone, never typed by hand
//!        │
//!   finding.rs                  where it was not reproduced: again, with one factor.rs changed at a time
//!        │
//!   markdown.rs                 the table of `docs/measurements/claims.md`
//! ```
//!
//! Two kinds of conditions are told apart in each claim's own words: those of the paper, and those that the paper does not
//! tell and that are ours.

mod claim;
mod corpus;
mod factor;
mod finding;
mod headers;
mod heads;
mod markdown;
mod measured;
mod pages;
mod papers;
mod runner;
mod setting;
mod statistics;
mod verdict;

mod belshe;
mod cacm12;
mod lulic;
mod mineki;
mod nsdi14;
mod unm;
mod whitepaper;

pub use claim::{BoundSide, Claim, ClaimedResult, Paper, Trend};
pub use corpus::{Corpus, CorpusError};
pub use finding::{ClaimResult, Shift};
pub use markdown::{markdown, markdown_row};
pub use measured::{MeasuredResult, Point, Unit};
pub(crate) use mineki::{fresh_page as mineki_fresh_page, page as mineki_page};
pub use papers::all;
pub use runner::ClaimRunner;
pub use verdict::Verdict;
