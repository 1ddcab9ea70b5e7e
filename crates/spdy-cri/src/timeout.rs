//! A timeout for futures, with the clock of a runtime.

use std::time::Duration;

use futures_util::future::{Either, select};
use spdy::SharedRuntime;

/// The output of `work`, or `None` after `timeout`.
pub(crate) async fn with_timeout<R>(
    runtime: &SharedRuntime,
    timeout: Duration,
    work: impl Future<Output = R>,
) -> Option<R> {
    let deadline = runtime.sleep_until(runtime.now() + timeout);
    match select(std::pin::pin!(work), deadline).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(((), _)) => None,
    }
}
