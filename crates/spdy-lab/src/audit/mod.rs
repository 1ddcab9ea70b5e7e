//! What an accelerator would do for a page: what moves, what stays and why, and what that saves.
//!
//! ```text
//! page ──► the accelerator's own judgement of every resource   survey.rs (by accelerator/accelerated_page.rs, which loads go by, too)
//!    │          │
//!    │          └─ what stays because nobody listed it ──► the lines that would move it     advice.rs
//!    ▼
//! loads in virtual time: without it, through it just started, through it when it has the page      case.rs
//! ```
//!
//! Nothing is estimated: verdicts are those of the rewriter that ships, times are of loads through the proxy that ships.

pub mod advice;
pub mod case;
pub mod survey;
