//! What the tests of this crate share.

pub(crate) mod import;
pub(crate) mod netlog_writer;
pub(crate) mod soundness;
