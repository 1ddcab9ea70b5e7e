//! What the driver and the handles of one session share: the machine behind a lock, its streams, and the loop that moves bytes.

pub(crate) mod block_check;
pub(crate) mod buffers;
pub(crate) mod builder_options;
pub(crate) mod dispatch;
pub(crate) mod driver;
pub(crate) mod entry;
pub(crate) mod incoming;
pub(crate) mod run_watch;
pub(crate) mod shared;
pub(crate) mod state;
pub(crate) mod stream_ref;
