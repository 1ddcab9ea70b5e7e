//! Admission of connections: limits of open connections, in total and for each address.
//!
//! A limit of one session is useless against a client that opens another. So the table of sources counts, for each address, its
//! open connections, its connection rate, and its connections that were closed for abuse:
//!
//! ```text
//!  control.rs ─▶ source_table.rs    address -> open now | tokens for new connections | abuses since ..   bounded length
//!            └─▶ idle_eviction.rs   address -> the slots of its connections      selects the idle connection to close when all are taken
//! ```

mod control;
mod idle_eviction;
mod limits;
mod source;
mod source_table;

pub use control::{Admission, AdmissionPermit, Conduct};
pub use limits::AdmissionLimits;
pub use source::network_of;
