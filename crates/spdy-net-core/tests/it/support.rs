//! The two ends of TLS.

use spdy_net_core::protocol::Protocol;
pub(crate) use spdy_testkit::tls::{tls_pair, without_key_log};

/// Every protocol over TCP.
pub(crate) const ALL: [Protocol; 5] = Protocol::ALL;
/// Bytes a pipe holds.
pub(crate) const PIPE: usize = 64 * 1024;
