//! What every protocol's server needs to serve one connection.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select;
use spdy::runtime::SharedRuntime;

use crate::handler::Handler;
use crate::latch::Latch;
use crate::options::ServerOptions;

/// How long after the stop a connection that has sent nothing yet may stay. Its first request may be on its way, and a
/// client that is cut off then cannot know that the request was not seen.
pub(crate) const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);

/// Handler, options and state of one served connection, for any protocol.
pub(crate) struct ServeContext<'a> {
    /// The client came over TLS.
    pub(crate) secure: bool,
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) options: &'a ServerOptions,
    pub(crate) runtime: &'a SharedRuntime,
    pub(crate) stop: &'a Latch,
}

/// Completes when the connection must end in order: the server stops, or the slot of the connection is needed for another.
pub(crate) fn end_requested(
    options: &ServerOptions,
    stop: &Latch,
) -> impl Future<Output = ()> + Unpin + use<> {
    select(stop.wait(), options.slot.wanted()).map(drop)
}
