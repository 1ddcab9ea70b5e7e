//! The shared state of the driver and the handles of one session: the machine behind a lock, its streams, and the I/O loop.
//!
//! | file | subject |
//! | --- | --- |
//! | `shared.rs`, `state.rs` | the session as all handles see it, and its state under the lock |
//! | `driver.rs`, `dispatch.rs`, `buffers.rs` | the loop of `Connection`: reads, writes, delivers events |
//! | `entry.rs`, `stream_ref.rs` | one stream, and a counted reference to it |
//! | `incoming.rs` | streams of the peer that were not accepted yet |
//! | `push_limits.rs`, `push_parent.rs` | pushes that no request has claimed yet |
//! | `run_watch.rs` | fails tasks that wait for a `Connection` that is never run |
//! | `builder_options.rs`, `block_check.rs` | setters that both builders have; the length of header blocks |

pub(crate) mod block_check;
pub(crate) mod buffers;
pub(crate) mod builder_options;
pub(crate) mod dispatch;
pub(crate) mod driver;
pub(crate) mod entry;
pub(crate) mod incoming;
pub(crate) mod push_limits;
pub(crate) mod push_parent;
pub(crate) mod run_watch;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod stream_ref;
