//! HAR 1.2, read and written.

pub(crate) mod cookies;
pub mod export;
pub(crate) mod import;
pub(crate) mod model;
