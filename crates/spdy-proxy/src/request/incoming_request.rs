//! Classifies an incoming request by whose resource it is for, and converts it to the request for the origin.

use std::net::IpAddr;
use std::sync::Arc;

use http::{header, request};
use spdy_cache::identity::IdentifiedUser;
use spdy_cache::stored::Stored;
use spdy_rewrite::reference::integrity;

use crate::config::websocket::WebSocketConfig;
use crate::request::client_origin::request_target;
use crate::request::forgeable_headers;
use crate::request::forward_headers;
use crate::request::origin_hints::OriginHints;
use crate::request::proxy_request::ProxyRequest;
use crate::request::rejection::RequestRejection;
use crate::sites::site::Site;
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
        let request = match (alias, site.rules.is_proxied_target(request_target(&head))) {
            (Some(alias), _) => ProxyRequest::for_alias(site, &alias, authority, client, head)?,
            (None, true) => ProxyRequest::for_third_party(site, authority, client, head)?,
            (None, false) => ProxyRequest::for_site(site, authority, client, head)?,
        };
        Ok(Self(request))
    }

    /// The request, without the fields that [`into_upstream_request`](Self::into_upstream_request) adds.
    #[must_use]
    pub fn request(&self) -> &ProxyRequest {
        &self.0
    }

    /// Sets the span context of the request.
    pub fn set_span(&mut self, context: Option<SpanContext>) {
        self.0.span_context = context;
    }

    /// Passes early hints of the origin to the client by `hints`.
    pub(crate) fn set_origin_hints(&mut self, hints: Option<OriginHints>) {
        self.0.origin_hints = hints.filter(|_| self.0.proxied.is_none());
    }

    /// The limits of WebSockets, if the request is for one and the site allows them.
    pub(crate) fn socket(&self) -> Option<WebSocketConfig> {
        let rule = self.0.path_rule.as_ref();
        let is_folder = rule.is_some_and(|rule| rule.folder.is_some());
        let websocket = self.0.site.websocket.filter(|_| self.0.is_websocket);
        websocket.filter(|_| !is_folder)
    }

    /// True if the client's own fields are enough to match the `Vary` of `stored`: it names no field that the proxy sets for the origin.
    #[must_use]
    pub fn can_select_variant(&self, stored: &Stored) -> bool {
        self.0.proxied.is_some()
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
        let Self(mut request) = self;
        if request.proxied.is_some() {
            return Ok(request); // hosts of third parties get none of these fields
        }
        let (head, site, authority) = (&mut request.head, &request.site, &request.authority);
        let target = request_target(head);
        let target = integrity::strip_unrewritten_mark(target).unwrap_or(target);
        let uri = site.own(authority, target);
        head.uri = uri.map_err(|_| RequestRejection::Target(target.to_owned()))?;
        head.headers.remove(header::HOST);
        if let Some(host) = site.host_header(authority) {
            head.headers.insert(header::HOST, host);
        }
        let (from, is_from_trusted) = (request.from, request.is_from_trusted);
        forgeable_headers::remove_forgeable(&mut head.headers, &head.method, from, is_from_trusted);
        // The connection of a trusted proxy has the proxy's certificate, and the proxy states that of the client.
        if let Some(certificate) = request
            .client_certificate
            .take()
            .filter(|_| !is_from_trusted)
        {
            forward_headers::set_client_certificate(&mut head.headers, &certificate);
        }
        forward_headers::set_forwarded_headers(&mut head.headers, from, request.arrival, authority);
        forward_headers::append_via_and_cdn_loop(&mut head.headers, head.version, &site.name);
        if let Some(hops) = forward_headers::max_forwards(&head.method, &head.headers) {
            let hops = hops.saturating_sub(1).into();
            head.headers.insert(header::MAX_FORWARDS, hops);
        }
        if let Some(rule) = &request.path_rule {
            rule.edit_request(&mut request.head.headers);
            if forgeable_headers::has_proxy_identity(&request.head.headers) {
                request.head.extensions.insert(IdentifiedUser);
            }
        }
        Ok(request)
    }
}
