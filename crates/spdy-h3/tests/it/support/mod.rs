//! Requests, a handler, and the time and TLS of both ends.

pub(crate) mod http3;
pub(crate) mod raw_server;

pub(crate) use spdy_testkit::echo::{echo, get, pattern, post, read, runtime};
pub(crate) use spdy_testkit::tls::without_key_log;
