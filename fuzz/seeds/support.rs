//! The writers of captures that the tests of `spdy-inspect` have, and the writer of NetLogs of `spdy-page`.

#[path = "../../crates/spdy-inspect/tests/it/support/file.rs"]
pub(crate) mod file;
#[path = "../../crates/spdy-inspect/tests/it/support/frames.rs"]
pub(crate) mod frames;
#[path = "../../crates/spdy-page/tests/it/support/netlog_writer.rs"]
pub(crate) mod netlog;
#[path = "../../crates/spdy-inspect/tests/it/support/tcp.rs"]
pub(crate) mod tcp;
#[path = "../../crates/spdy-inspect/tests/it/support/tls.rs"]
pub(crate) mod tls;
