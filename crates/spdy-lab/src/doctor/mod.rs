//! What would make this page load faster, found by trying it.
//!
//! ```text
//! page ──► what could be changed        a Remedy each: fold a host, push, hint at a resource, do without a host,
//!              │   (remedy.rs)          let a script run later, another protocol; or a worse network
//!              ▼
//!          the page with that change    another replica, graph, or choices   (modified_page.rs)
//!              │
//!              ▼
//!          loads in virtual time  ──►   Finding: load and DOMContentLoaded, with and without   (examination.rs)
//! ```
//!
//! Nothing is estimated: every figure is the difference between loads of the page as it is and loads with one change,
//! over the same network with the same seeds. Savings of different remedies do not add up.

mod case;
pub mod describe;
pub mod examination;
mod modified_page;
pub mod remedy;
