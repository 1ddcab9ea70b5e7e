//! A request as it arrived, and the additions that make it the request for the origin.

use std::net::IpAddr;
use std::sync::Arc;

use http::{header, request};
use spdy_cache::stored::Stored;
use spdy_rewrite::reference::integrity;

use crate::config::websocket::WebSocketConfig;
use crate::request::client_origin::request_target;
use crate::request::forgeable_headers;
use crate::request::forward_headers;
use crate::request::proxy_request::ProxyRequest;
use crate::request::rejection::RequestRejection;
use crate::sites::site_table::Site;
use crate::telemetry::trace_context::SpanContext;

/// A request as it arrived, with its cache key. It does not have the additions for a site's own origin yet: most requests are answered from
/// the cache and reach no origin.
#[derive(Debug)]
pub struct IncomingRequest(ProxyRequest);

impl IncomingRequest {
    /// Reads `asked`, which named `authority` and came from `from`.
    ///
    /// # Errors
    ///
    /// The rule that forbids it.
    pub fn read(
        site: Arc<Site>,
        authority: String,
        from: Option<IpAddr>,
        asked: request::Parts,
    ) -> Result<Self, RequestRejection> {
        let named = site.named(&authority).cloned();
        let wanted = match (named, site.rules.is_proxied_target(request_target(&asked))) {
            (Some(named), _) => ProxyRequest::for_alias(site, &named, authority, from, asked)?,
            (None, true) => ProxyRequest::for_third_party(site, authority, from, asked)?,
            (None, false) => ProxyRequest::for_site(site, authority, from, asked)?,
        };
        Ok(Self(wanted))
    }

    /// The request, without the additions for the origin ([`into_upstream_request`](Self::into_upstream_request)).
    #[must_use]
    pub fn request(&self) -> &ProxyRequest {
        &self.0
    }

    /// The same with a span context.
    #[must_use]
    pub fn with_span(mut self, context: Option<SpanContext>) -> Self {
        self.0.span_context = context;
        self
    }

    /// The limits for WebSockets, if it requests one.
    pub(crate) fn socket(&self) -> Option<WebSocketConfig> {
        self.0.site.websocket.filter(|_| self.0.is_websocket)
    }

    /// True if the client's own fields are enough to match the `Vary` of `stored`: it names no field that the proxy adds for the origin.
    #[must_use]
    pub fn can_select_variant(&self, stored: &Stored) -> bool {
        self.0.moved.is_some()
            || !stored
                .selecting_names()
                .any(forward_headers::is_set_by_proxy)
    }

    /// The request with all additions for the origin: the name and scheme by which the site was requested, the client, and the protocol.
    ///
    /// # Errors
    ///
    /// It makes no URI.
    pub fn into_upstream_request(self) -> Result<ProxyRequest, RequestRejection> {
        let Self(mut wanted) = self;
        if wanted.moved.is_some() {
            return Ok(wanted); // other hosts get no additions
        }
        let (ask, site, authority) = (&mut wanted.ask, &wanted.site, &wanted.authority);
        let target = request_target(ask);
        let target = integrity::strip_unrewritten_mark(target).unwrap_or(target);
        let uri = site.own(authority, target);
        ask.uri = uri.map_err(|_| RequestRejection::Target(target.to_owned()))?;
        ask.headers.remove(header::HOST);
        if let Some(host) = site.host_header(authority) {
            ask.headers.insert(header::HOST, host);
        }
        let (from, is_from_trusted) = (wanted.from, wanted.is_from_trusted);
        forgeable_headers::remove_forgeable(&mut ask.headers, &ask.method, from, is_from_trusted);
        forward_headers::set_forwarded_headers(&mut ask.headers, from, wanted.arrival, authority);
        forward_headers::append_via_and_cdn_loop(&mut ask.headers, ask.version, &site.name);
        if let Some(left) = forward_headers::max_forwards(&ask.method, &ask.headers) {
            let left = left.saturating_sub(1).into();
            ask.headers.insert(header::MAX_FORWARDS, left);
        }
        Ok(wanted)
    }
}
