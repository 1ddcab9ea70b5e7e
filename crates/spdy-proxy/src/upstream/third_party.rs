//! Requests to other hosts, within the limits that the rules set for their responses.

use futures_util::future::{Either, select};
use http::{Request, Response};
use spdy::body::Body;
use spdy_client::error::{Error, TimeoutPhase};
use spdy_client::origin::Origin;
use spdy_frame::priority::Priority;
use spdy_rewrite::rules::host_limits::HostLimits;

use crate::body::limited_body::limit_body;
use crate::telemetry::counters::Counters;
use crate::upstream::client::Upstream;
use crate::upstream::error::UpstreamError;

/// The limits for a host's responses to a site.
pub(crate) struct ThirdPartyLimits<'a> {
    pub(crate) site: &'a str,
    pub(crate) limits: HostLimits,
    pub(crate) counters: &'a Counters,
}

impl Upstream {
    /// Sends `request` to the third party `host`. The body of the response fails past the limits.
    pub(crate) async fn fetch_third_party(
        &self,
        host: &ThirdPartyLimits<'_>,
        request: Request<Body>,
        priority: Priority,
    ) -> Result<Response<Body>, UpstreamError> {
        let (origin, limits) = (Origin::of(request.uri())?, &host.limits);
        let key = (host.site.to_owned(), origin.clone(), limits.fetches);
        let permit = Box::pin(self.fetch_limits.acquire(key, limits.fetches));
        let timer = self
            .runtime
            .sleep_until(self.runtime.now() + self.queue_timeout);
        let permit = match select(permit, timer).await {
            Either::Left((permit, _)) => permit,
            Either::Right(_) => return Err(UpstreamError::FetchLimitTimeout(origin)),
        };
        // The time that a request waits for a permit does not count for the host.
        let begun = self.runtime.now();
        let after = limits.head_timeout.unwrap_or(limits.fetch_timeout);
        let after = after.min(limits.fetch_timeout);
        let exchange = Box::pin(self.fetch_other(request, priority));
        let timer = self.runtime.sleep_until(begun + after);
        let response = match select(exchange, timer).await {
            Either::Left((result, _)) => result?,
            Either::Right(_) => {
                let late = Error::TimedOut {
                    phase: TimeoutPhase::Response,
                    origin: origin.clone(),
                    after,
                };
                self.record_result(origin, begun, Some(&late));
                return Err(late.into());
            }
        };
        let deadline = self.runtime.sleep_until(begun + limits.fetch_timeout);
        let counters = host.counters.clone();
        Ok(response.map(|body| limit_body(body, limits.max_bytes, deadline, permit, counters)))
    }
}
