//! Classifies an incoming request by whose resource it is for, and converts it to the request for the origin.

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

/// A request from a client, with its cache key. The fields for the site's own origin are not added yet, because most requests are answered
/// from the cache.
#[derive(Debug)]
pub struct IncomingRequest(ProxyRequest);

impl IncomingRequest {
    /// Classifies the request with `head`: it is for a host alias of `site`, for a proxied URL of a third party, or for the site's own
    /// origin. `authority` is the request's host, and `client` the address that it came from. An alias has precedence over a proxied URL.
    ///
    /// # Errors
    ///
    /// The request is not allowed.
    pub fn classify(
        site: Arc<Site>,
        authority: String,
        client: Option<IpAddr>,
        head: request::Parts,
    ) -> Result<Self, RequestRejection> {
        let alias = site.named(&authority).cloned();
        let wanted = match (alias, site.rules.is_proxied_target(request_target(&head))) {
            (Some(alias), _) => ProxyRequest::for_alias(site, &alias, authority, client, head)?,
            (None, true) => ProxyRequest::for_third_party(site, authority, client, head)?,
            (None, false) => ProxyRequest::for_site(site, authority, client, head)?,
        };
        Ok(Self(wanted))
    }

    /// The request, without the fields that [`into_upstream_request`](Self::into_upstream_request) adds.
    #[must_use]
    pub fn request(&self) -> &ProxyRequest {
        &self.0
    }

    /// Sets the span context of the request.
    #[must_use]
    pub fn with_span(mut self, context: Option<SpanContext>) -> Self {
        self.0.span_context = context;
        self
    }

    /// The limits of WebSockets, if the request is for one and the site allows them.
    pub(crate) fn socket(&self) -> Option<WebSocketConfig> {
        self.0.site.websocket.filter(|_| self.0.is_websocket)
    }

    /// True if the client's own fields are enough to match the `Vary` of `stored`: it names no field that the proxy sets for the origin.
    #[must_use]
    pub fn can_select_variant(&self, stored: &Stored) -> bool {
        self.0.moved.is_some()
            || !stored
                .selecting_names()
                .any(forward_headers::is_set_by_proxy)
    }

    /// Converts to the request for the origin. For the site's own origin it removes forgeable fields, and adds the name and scheme by which
    /// the site was requested, the client's address and the protocol.
    ///
    /// # Errors
    ///
    /// The target and the site's origin do not make a valid URI.
    pub fn into_upstream_request(self) -> Result<ProxyRequest, RequestRejection> {
        let Self(mut wanted) = self;
        if wanted.moved.is_some() {
            return Ok(wanted); // hosts of third parties get none of these fields
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
