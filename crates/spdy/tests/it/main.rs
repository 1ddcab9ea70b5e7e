//! The library: client and server at the two ends of one connection, in memory or in virtual time.

mod compressed_lengths;
mod conformance;
mod exchanges;
mod flow_control;
mod metrics;
mod priority;
mod push;
mod raw_streams;
mod robustness;
mod session_end;
mod smol;
mod support;
#[cfg(all(feature = "tokio-runtime", feature = "tower"))]
mod tower;
mod unclaimed_pushes;
mod upgrade;
mod version_detection;
mod virtual_time;
