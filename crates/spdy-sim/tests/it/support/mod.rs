//! What the tests of several themes use.

pub(crate) mod timeline;
