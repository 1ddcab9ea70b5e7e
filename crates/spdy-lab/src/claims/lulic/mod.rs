//! Lulic 2013: a page of 196 flags, and copies of three pages of the time, through a dummynet gateway.
//!
//! ```text
//! claims.rs     the claims of the paper
//! kind.rs       what claims of one kind have in common
//! setting.rs    its laboratory: pages, the two ways that are compared, and what else may explain a difference
//! grid.rs       its cells, 7 bandwidths by 6 delays, and what is measured over them
//! ```

mod claims;
mod grid;
mod kind;
mod setting;

pub(crate) use claims::CLAIMS;
