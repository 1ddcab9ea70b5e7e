//! The state that every protocol's server needs to serve one connection.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select;
use spdy::runtime::SharedRuntime;

use crate::handler::Handler;
use crate::latch::Latch;
use crate::options::ServerOptions;
use crate::timing::read_timeout_handler::ReadTimeoutHandler;

/// How long after the stop a connection that has sent nothing yet may stay open. Its first request may be in flight, and if the
/// connection is closed then, the client cannot know that the request was not processed.
pub const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Handler, options and state of one served connection, for any protocol.
#[derive(Debug)]
pub struct ServeContext<'a> {
    /// True if the client uses TLS.
    pub secure: bool,
    /// Responds to requests. Their bodies have the read timeout of `options`.
    pub handler: Arc<dyn Handler>,
    /// Limits and options of the connection.
    pub options: &'a ServerOptions,
    /// Time and tasks.
    pub runtime: &'a SharedRuntime,
    /// Set when the server stops.
    pub stop: &'a Latch,
}

impl<'a> ServeContext<'a> {
    /// The context of a connection whose requests go to `handler`, with a read timeout for their bodies.
    pub fn new(
        secure: bool,
        handler: Arc<dyn Handler>,
        options: &'a ServerOptions,
        runtime: &'a SharedRuntime,
        stop: &'a Latch,
    ) -> Self {
        let handler = Arc::new(ReadTimeoutHandler {
            handler,
            runtime: runtime.clone(),
            options: options.clone(),
        });
        Self {
            secure,
            handler,
            options,
            runtime,
            stop,
        }
    }
}

/// Completes when a connection that has sent nothing must end: the server stopped [`FIRST_REQUEST_GRACE`] ago, or the slot of the
/// connection is needed for another.
pub fn shutdown_before_first_byte(
    options: &ServerOptions,
    stop: &Latch,
    runtime: &SharedRuntime,
) -> impl Future<Output = ()> + Unpin + use<> {
    let (stopped, runtime) = (stop.wait(), runtime.clone());
    let late = async move {
        stopped.await;
        runtime
            .sleep_until(runtime.now() + FIRST_REQUEST_GRACE)
            .await;
    };
    select(Box::pin(late), options.slot.evicted()).map(drop)
}

/// Completes when the connection must end in order: the server stops, or the slot of the connection is needed for another.
pub fn end_requested(
    options: &ServerOptions,
    stop: &Latch,
) -> impl Future<Output = ()> + Unpin + use<> {
    select(stop.wait(), options.slot.evicted()).map(drop)
}
