//! [`Session`]: one endpoint of a SPDY session, and how it handles commands, frames, time and output.
//!
//! | file | subject |
//! | --- | --- |
//! | `endpoint.rs` | the session's fields, and the `handle_*` and `poll_*` functions that a driver calls |
//! | `commands.rs` | what the owner does: open, reply, send, consume, reset |
//! | `receive.rs`, `receive_stream.rs` | what the peer's frames do |
//! | `write_order.rs`, `write_frames.rs` | which frame is written next, and its bytes |
//! | `flow_control.rs` | WINDOW_UPDATE, growing windows, backpressure |
//! | `timeouts.rs` | every time limit |
//! | `shutdown.rs` | draining, GOAWAY, faults |
//! | `detect_version.rs` | SPDY/3 or 3.1, if no version was negotiated |

mod commands;
mod detect_version;
mod endpoint;
mod flow_control;
mod receive;
mod receive_stream;
mod shutdown;
mod timeouts;
mod write_frames;
mod write_order;

pub use endpoint::{Session, Stats, StreamOptions};
