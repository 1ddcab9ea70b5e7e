//! Examinations find changes that make a page load faster, by testing them.
//!
//! ```text
//! page ──► possible changes             a Remedy each: fold a host, push, hint at a resource, remove a host,
//!              │   (remedy.rs)          run a script later, another protocol; or a worse network
//!              ▼
//!          the page with that change    another replica, graph, or options   (modified_page.rs)
//!              │
//!              ▼
//!          loads in virtual time  ──►   RemedyResult: load and DOMContentLoaded, with and without   (examination.rs)
//! ```
//!
//! Nothing is estimated: every figure is the difference between loads of the unchanged page and loads with one change, over the same
//! network with the same seeds. Savings of different remedies do not add up.

mod case;
pub mod describe;
pub mod examination;
mod modified_page;
pub mod remedy;
