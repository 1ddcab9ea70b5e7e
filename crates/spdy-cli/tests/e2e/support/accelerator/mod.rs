//! A running accelerator and the external programs that tests run with it.

pub(crate) mod accelerated_site;
pub(crate) mod haproxy;
pub(crate) mod otel_collector;
pub(crate) mod pebble;
pub(crate) mod program;
#[cfg(unix)]
pub(crate) mod replacement;
