//! A request under the name that another host has here: the host, the cache key, and the request for the host.
//!
//! The operator listed the host, and the name stands for that host only (`spdy-rewrite/rules/host_aliases.rs`). Its stored answers are separate
//! from those of resources moved under the site's name: an answer may depend on the requesting origin.

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
use crate::request::websocket_handshake;
use crate::sites::site_table::Site;

impl ProxyRequest {
    /// Reads `asked`, which named `authority`, the name of `named`.
    ///
    /// # Errors
    ///
    /// The rule that forbids it.
    pub(crate) fn for_alias(
        site: Arc<Site>,
        named: &HostAlias,
        authority: String,
        from: Option<IpAddr>,
        mut asked: request::Parts,
    ) -> Result<Self, RequestRejection> {
        if websocket_handshake::is_upgrade_request(&asked) {
            return Err(Refusal::Upgrade.into());
        }
        let target = request_target(&asked);
        let marked = integrity::strip_unrewritten_mark(target);
        let (is_off, target) = (marked.is_some(), marked.unwrap_or(target).to_owned());
        let arrival = asked.extensions.get().copied();
        asked.extensions.clear();
        let asked = Request::from_parts(asked, ());
        let (moved, upstream) = open_alias(&site, named, &target, &asked)?;
        let (mut ask, ()) = asked.into_parts();
        let said = std::mem::replace(&mut ask.headers, upstream.headers);
        ask.method = upstream.method;
        copy_conditions(&said, &mut ask.headers);
        let unusable = || RequestRejection::Target(moved.target().to_owned());
        let uri: Result<Uri, _> = moved.url().as_str().parse();
        ask.uri = uri.map_err(|_| unusable())?;
        let key = cache_key(&site, &moved, upstream.load, &ask, is_off).ok_or_else(unusable)?;
        Ok(Self {
            moved: Some((moved, upstream.load)),
            site,
            key,
            ask,
            from,
            is_from_trusted: false, // another host receives no field of the client
            arrival,
            accepted_codings: AcceptedCodings::of(&said),
            has_content: false,
            is_websocket: false,
            prefetch_step: None,
            rewriting_disabled: is_off,
            authority,
            span_context: None,
            client_headers: Some(said),
        })
    }

    /// Whether it is of a host that has a name of its own here.
    #[must_use]
    pub fn is_alias(&self) -> bool {
        self.moved
            .as_ref()
            .is_some_and(|(moved, _)| moved.is_alias())
    }
}

/// The request for `target` to the host.
fn open_alias(
    site: &Site,
    named: &HostAlias,
    target: &str,
    asked: &Request<()>,
) -> Result<(ProxiedUrl, UpstreamRequest), RequestRejection> {
    let opened = site.rules.open_alias(named, target).and_then(|moved| {
        let upstream = alias_request::request(&site.rules, named, &moved, asked)?;
        Ok((moved, upstream))
    });
    opened.map_err(
        |why| match alias_request::is_sent_on(&why, target, asked.headers()) {
            true => RequestRejection::Redirect {
                why,
                to: format!("{}{target}", named.original_origin()),
            },
            false => why.into(),
        },
    )
}

/// The cache key of the answer to `ask`. It has the request's Origin and the headers that scripts can set: the answer may depend on them,
/// even if the host does not state it in Vary.
fn cache_key(
    site: &Site,
    moved: &ProxiedUrl,
    load: Load,
    ask: &request::Parts,
    is_off: bool,
) -> Option<Key> {
    let tag = site.rules.tag();
    let off = if is_off { "off " } else { "" };
    let teller = ask.headers.get(ORIGIN).and_then(|it| it.to_str().ok());
    let mut rules = match teller {
        Some(origin) => format!("{off}{tag} named cors {origin}"),
        None => format!("{off}{tag} named"),
    };
    for name in alias_request::script_headers(moved, load) {
        let said = ask.headers.get(name).and_then(|said| said.to_str().ok());
        if let Some(said) = said.filter(|said| *said != "*/*") {
            rules.extend([" ", name.as_str(), "=", said]);
        }
    }
    let parts = KeyParts {
        site: site.rules.site_origin(),
        scheme: moved.scheme().name(),
        host: moved.host(),
        port: moved.port(),
        target: moved.target(),
        rules: &rules,
    };
    Key::new(&parts).ok()
}
