//! A request for an alias of another host: the host, the cache key, and the request for the host.
//!
//! The operator listed the host, and the alias represents that host only (`spdy-rewrite/rules/host_aliases.rs`). Its stored responses are
//! separate from those of proxied URLs: a response may depend on the requesting origin.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::ORIGIN;
use http::{Request, Uri, request};
use spdy_cache::key::{Key, KeyParts};
use spdy_rewrite::reference::integrity;
use spdy_rewrite::request::alias_request;
use spdy_rewrite::request::anonymize::{Load, UpstreamRequest};
use spdy_rewrite::rules::host_aliases::HostAlias;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use crate::body::content_coding::AcceptedCodings;
use crate::request::client_origin::request_target;
use crate::request::proxy_request::{ProxyRequest, copy_conditions};
use crate::request::rejection::RequestRejection;
use crate::request::stream_traits::StreamTraits;
use crate::request::websocket_handshake;
use crate::sites::site::Site;

impl ProxyRequest {
    /// Reads `client_request` for `authority`, the name of `alias`.
    ///
    /// # Errors
    ///
    /// The rule that forbids it.
    pub(crate) fn for_alias(
        site: Arc<Site>,
        alias: &HostAlias,
        authority: String,
        from: Option<IpAddr>,
        mut client_request: request::Parts,
    ) -> Result<Self, RequestRejection> {
        if websocket_handshake::is_upgrade_request(&client_request) {
            return Err(Refusal::Upgrade.into());
        }
        let target = request_target(&client_request);
        let unmarked = integrity::strip_unrewritten_mark(target);
        let (is_off, target) = (unmarked.is_some(), unmarked.unwrap_or(target).to_owned());
        let arrival = client_request.extensions.get().copied();
        client_request.extensions.clear();
        let client_request = Request::from_parts(client_request, ());
        let (proxied, upstream) = open_alias(&site, alias, &target, &client_request)?;
        let (mut head, ()) = client_request.into_parts();
        let client_headers = std::mem::replace(&mut head.headers, upstream.headers);
        head.method = upstream.method;
        copy_conditions(&client_headers, &mut head.headers);
        let unusable = || RequestRejection::Target(proxied.target().to_owned());
        let uri: Result<Uri, _> = proxied.url().as_str().parse();
        head.uri = uri.map_err(|_| unusable())?;
        let key = cache_key(&site, &proxied, upstream.load, &head, is_off).ok_or_else(unusable)?;
        Ok(Self {
            proxied: Some((proxied, upstream.load)),
            site,
            key,
            head,
            from,
            is_from_trusted: false, // another host receives no field of the client
            needs_password: false,
            arrival,
            accepted_codings: AcceptedCodings::of(&client_headers),
            has_content: false,
            is_websocket: false,
            prefetch_step: None,
            rewriting_disabled: is_off,
            authority,
            span_context: None,
            origin_hints: None,
            client_certificate: None,
            path_rule: None,
            streams: StreamTraits::default(),
            client_headers: Some(client_headers),
        })
    }

    /// Whether it is a request for an alias.
    #[must_use]
    pub fn is_alias(&self) -> bool {
        self.proxied
            .as_ref()
            .is_some_and(|(proxied, _)| proxied.is_alias())
    }
}

/// The request for `target` to the host.
fn open_alias(
    site: &Site,
    alias: &HostAlias,
    target: &str,
    client_request: &Request<()>,
) -> Result<(ProxiedUrl, UpstreamRequest), RequestRejection> {
    let opened = site.rules.open_alias(alias, target).and_then(|proxied| {
        let upstream = alias_request::request(&site.rules, alias, &proxied, client_request)?;
        Ok((proxied, upstream))
    });
    opened.map_err(|reason| {
        match alias_request::is_sent_on(&reason, target, client_request.headers()) {
            true => RequestRejection::Redirect {
                reason,
                to: format!("{}{target}", alias.original_origin()),
            },
            false => reason.into(),
        }
    })
}

/// The cache key of the response to `head`. It has the request's Origin and the headers that scripts can set: the response may depend on them,
/// even if the host does not state it in Vary.
fn cache_key(
    site: &Site,
    proxied: &ProxiedUrl,
    load: Load,
    head: &request::Parts,
    is_off: bool,
) -> Option<Key> {
    let tag = site.rules.tag();
    let off = if is_off { "off " } else { "" };
    let origin = head
        .headers
        .get(ORIGIN)
        .and_then(|value| value.to_str().ok());
    let mut rules = match origin {
        Some(origin) => format!("{off}{tag} named cors {origin}"),
        None => format!("{off}{tag} named"),
    };
    for name in alias_request::script_headers(proxied, load) {
        let value = head.headers.get(name).and_then(|value| value.to_str().ok());
        if let Some(value) = value.filter(|value| *value != "*/*") {
            rules.extend([" ", name.as_str(), "=", value]);
        }
    }
    let parts = KeyParts {
        site: site.rules.site_origin(),
        scheme: proxied.scheme().name(),
        host: proxied.host(),
        port: proxied.port(),
        target: proxied.target(),
        rules: &rules,
    };
    Key::new(&parts).ok()
}
