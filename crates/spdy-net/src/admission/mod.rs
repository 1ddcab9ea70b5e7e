//! Who may connect: so many at once, and of those so many from one address.
//!
//! A budget of one session is nothing to a client that opens another. So what one address has open, how
//! fast it connects, and how often its connections were ended for abuse is kept beside the sessions:
//!
//! ```text
//!  door.rs ─▶ records.rs   address -> open now | tokens for new connections | abuses since ..     a table of bounded length
//!         └─▶ places.rs    address -> the seats of its connections                               who gives way when all are taken
//! ```

mod door;
mod limits;
mod places;
mod records;
mod source;

pub use door::{Admission, AdmissionPermit, Conduct};
pub use limits::AdmissionLimits;
pub use source::network_of;
