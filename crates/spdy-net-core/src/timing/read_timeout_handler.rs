//! A handler whose requests have bodies with a read timeout.

use std::sync::Arc;

use http::{Request, Response};
use spdy::body::Body;
use spdy::runtime::{BoxFuture, SharedRuntime};

use crate::body_read_timeout::BodyReadTimeout;
use crate::handler::Handler;
use crate::options::ServerOptions;
use crate::refusal::Refusal;
use crate::timing::progress_timeout::ProgressTimeout;
use crate::timing::read_timeout_body::with_read_timeout;

/// Calls `handler` with requests whose bodies fail when the client sends too little for too long.
pub(crate) struct ReadTimeoutHandler {
    pub(crate) handler: Arc<dyn Handler>,
    pub(crate) runtime: SharedRuntime,
    pub(crate) options: ServerOptions,
}

impl Handler for ReadTimeoutHandler {
    fn answer(&self, request: Request<Body>) -> BoxFuture<Response<Body>> {
        if http_body::Body::is_end_stream(request.body()) {
            return self.handler.answer(request);
        }
        let timeout = BodyReadTimeout::default();
        let mut request = request.map(|body| {
            let stall = ProgressTimeout::for_reads(self.runtime.clone(), &self.options);
            with_read_timeout(body, stall, timeout.clone())
        });
        request.extensions_mut().insert(timeout);
        self.handler.answer(request)
    }

    fn refused(&self, refusal: &Refusal<'_>) {
        self.handler.refused(refusal);
    }
}
