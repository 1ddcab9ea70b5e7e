//! What an accelerator would do for a page: what moves, what stays and why, and what that saves.
//!
//! ```text
//! page ──► the accelerator's decision for each resource   survey.rs (by spdy-sim/src/accelerator, as in loads)
//!    │          │
//!    │          └─ resources of hosts that are not listed ──► the configuration lines that would move them     advice.rs
//!    ▼
//! loads in virtual time: without the accelerator, through one just started, through one that has the page      case.rs
//! ```
//!
//! Nothing is estimated: verdicts are those of the rewriter that ships, times are of loads through the proxy that ships.

pub mod advice;
pub mod case;
pub mod survey;
