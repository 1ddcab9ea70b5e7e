//! Shared code of this crate's tests.

pub(crate) mod import;
pub(crate) mod netlog_writer;
pub(crate) mod soundness;
