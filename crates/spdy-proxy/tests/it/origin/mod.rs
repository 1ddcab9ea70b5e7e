//! Origins that are slow, pause or stall.

mod early_hints;
mod expect_continue;
mod framing;
mod grpc;
mod host_names;
mod pausing_origin;
mod servers;
mod slow_origin;
mod stalled_uploads;
mod trailers;
