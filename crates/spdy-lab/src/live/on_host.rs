//! Async work on the thread of a host.

use std::future::Future;
use std::io;

/// Runs `task` on this thread, in a tokio runtime that ends with it; sockets that are still open end too.
pub(crate) fn block_on<T>(task: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(task)
}
