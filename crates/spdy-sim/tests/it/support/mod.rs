//! What the tests of several themes use.

pub(crate) mod timeline;
pub(crate) mod whole_load;
