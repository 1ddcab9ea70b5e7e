//! Lulic 2013: a page of 196 flags, and copies of three pages of the time, through a dummynet gateway.
//!
//! ```text
//! claims.rs       the claims, one by one
//! claim_kinds.rs  constructors for kinds of claims
//! setting.rs      the laboratory: pages, the two setups that are compared, and factors that may explain a difference
//! grid.rs         the cells, 7 bandwidths by 6 delays, and the measurements over them
//! ```

mod claim_kinds;
mod claims;
mod grid;
mod setting;

pub(crate) use claims::CLAIMS;
