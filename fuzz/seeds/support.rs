//! The writers of captures that the tests of `spdy-inspect` have.

#[path = "../../crates/spdy-inspect/tests/all/support/file.rs"]
pub(crate) mod file;
#[path = "../../crates/spdy-inspect/tests/all/support/tcp.rs"]
pub(crate) mod tcp;
