//! Which of the requests that a page wants go out, and when: a browser does not send them all at once.
//!
//! ```text
//!  page_load/ wants ──► throttle.rs ──► a connection
//!                         │  the renderer's: while the head is parsed, hardly anything but sheets and scripts
//!                         └─ the network service's: so many at once that can wait
//! ```
//!
//! [`choice`] names the schedulers that there are, [`plan`] holds how urgent each request of a page is and where its documents' heads
//! end, and `throttle` is the machine. `docs/explanation/page-load-model.md` has the sources of its numbers.

pub mod choice;
pub mod plan;
pub(crate) mod throttle;
