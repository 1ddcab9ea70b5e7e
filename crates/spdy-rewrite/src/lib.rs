//! What of a page is moved to one name, how its URL reads, and what a moved request and its answer may carry.
//!
//! ```text
//!  config.rs ──► rules.rs (host.rs, kind.rs) ──► what is moved, and why not            limits.rs
//!                   │
//!                   ├── moved_url.rs, capability.rs     /.spdy/1/<cap>/s/host/path: made and opened
//!                   ├── anonymous.rs                    a request for it: checked, and written anew
//!                   ├── hygiene.rs, redirect.rs         its answer: what of it is passed on
//!                   └── refusal.rs                      or a reason
//! ```
//!
//! No I/O, no clock, no chance: the same input gives the same bytes. Names are not resolved here, and addresses not
//! judged; whoever connects does that.

pub mod anonymous;
pub mod capability;
pub mod config;
pub mod entry;
pub mod hygiene;
pub mod kind;
pub mod limits;
pub mod moved_url;
pub mod redirect;
pub mod refusal;
pub mod rules;
pub mod rules_error;
pub mod verdict;

mod host;
