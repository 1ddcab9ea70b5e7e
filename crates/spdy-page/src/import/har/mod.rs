//! HAR 1.2: import and export.

pub(crate) mod cookies;
pub mod export;
pub(crate) mod import;
pub(crate) mod model;
