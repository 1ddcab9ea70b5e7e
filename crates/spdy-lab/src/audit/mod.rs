//! Audits predict what an accelerator does for a page: proxied and direct resources with reasons, and the saving.
//!
//! ```text
//! page ──► the accelerator's decision for each resource   survey.rs (by spdy-sim/src/accelerator, as in loads)
//!    │          │
//!    │          └─ resources of hosts that are not listed ──► the configuration lines that would proxy them    advice.rs
//!    ▼
//! loads in virtual time: without the accelerator, through a newly started one, through one that has the page     case.rs
//! ```
//!
//! Nothing is estimated: deliveries are decided by the released rewriter, and times are those of loads through the released proxy.

pub mod advice;
pub mod case;
pub mod survey;
