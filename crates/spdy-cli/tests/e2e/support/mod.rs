//! What the tests share: the program, its peers, the files that travel.

pub(crate) mod accelerated;
pub(crate) mod accelerator;
pub(crate) mod capture;
pub(crate) mod certificate;
pub(crate) mod chromium;
#[cfg(unix)]
pub(crate) mod dask;
pub(crate) mod echo_origin;
pub(crate) mod files;
pub(crate) mod four_domains;
pub(crate) mod haproxy;
pub(crate) mod json_schema;
pub(crate) mod lab;
pub(crate) mod origins;
pub(crate) mod otel_collector;
pub(crate) mod pebble;
pub(crate) mod peers;
pub(crate) mod pictures;
pub(crate) mod postgres;
pub(crate) mod program;
pub(crate) mod raw_client;
pub(crate) mod raw_frames;
pub(crate) mod raw_origin;
#[cfg(unix)]
pub(crate) mod replaced;
pub(crate) mod site;
pub(crate) mod socket_origin;
#[cfg(target_os = "linux")]
pub(crate) mod unprivileged;
