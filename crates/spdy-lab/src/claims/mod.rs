//! Claims of papers about SPDY, measured again.
//!
//! ```text
//! papers/          Claim (claim.rs): the paper's statement as data, its conditions, and its measurement
//!    │             with pages and a setting (setting.rs)
//!    ▼
//! runner.rs        loads in virtual time: pages x settings x runs, the two setups in pairs
//!    │             load_memo.rs has the loads that were measured before
//!    │
//! statistics.rs    MeasuredResult (measured.rs): figures with their intervals
//!    │
//! verdict.rs       Verdict: derived from ClaimedResult and MeasuredResult only
//!    │
//! result.rs        if it was not reproduced: again, with one factor (factor.rs) changed at a time
//!    │
//! markdown.rs      the table of `docs/measurements/claims.md`
//!
//! corpus.rs        the user's recordings; recorded_heads.rs and header_saving.rs measure their heads without a network
//! ```
//!
//! The text of each claim separates two kinds of conditions: those of the paper, and ours, which the paper does not state.

mod claim;
mod corpus;
mod factor;
mod header_saving;
mod load_memo;
mod markdown;
mod measured;
mod papers;
mod recorded_heads;
mod result;
mod runner;
mod setting;
mod statistics;
mod verdict;

pub use claim::{BoundSide, Claim, ClaimedResult, Paper, Trend};
pub use corpus::{Corpus, CorpusError};
pub use load_memo::LoadMemo;
pub use markdown::{markdown, markdown_row};
pub use measured::{MeasuredResult, Point, Unit};
pub use papers::all;
pub use result::{ClaimResult, Shift};
pub use runner::ClaimRunner;
pub use verdict::Verdict;
