//! A client's request with what the proxy derives from it: its site, its cache key, and the request for the origin.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use http::header::{self, HeaderName};
use http::{HeaderMap, HeaderValue, Method, Request, Uri, request};
use spdy::body::Body;
use spdy_cache::identity::IdentifiedUser;
use spdy_cache::key::{Key, KeyParts};
use spdy_net::client_certificate::ClientCertificate;
use spdy_net::handler::RequestInfo;
use spdy_net::interim::expect_continue::expects_continue;
use spdy_rewrite::csp::guard;
use spdy_rewrite::kind::Kind;
use spdy_rewrite::reference::integrity;
use spdy_rewrite::request::anonymize::{self, Load};
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::urls::proxied_url::ProxiedUrl;

use crate::body::content_coding::AcceptedCodings;
use crate::origin_kind::OriginKind;
use crate::request::access::NeedsPassword;
use crate::request::client_conditions::{CACHE_REQUEST_FIELDS, keep_single_range};
use crate::request::client_origin::request_target;
use crate::request::client_origin::{client_origin, client_origin_text};
use crate::request::forgeable_headers::{FromTrustedProxy, has_proxy_identity};
use crate::request::forward_headers;
use crate::request::incoming_request::IncomingRequest;
use crate::request::origin_hints::OriginHints;
use crate::request::prefetch_step::PrefetchStep;
use crate::request::rejection::RequestRejection;
use crate::request::stream_traits::StreamTraits;
use crate::request::websocket_handshake;
use crate::sites::page_policies::PagePolicy;
use crate::sites::path_rules::PathRule;
use crate::sites::site::Site;
use crate::telemetry::trace_context::SpanContext;

/// A request to the proxy, and what the proxy derived from it.
#[derive(Clone, Debug)]
pub struct ProxyRequest {
    /// The site that it belongs to.
    pub site: Arc<Site>,
    /// The resource of another host that it is for, and how it is loaded; `None` for the site's own.
    pub proxied: Option<(ProxiedUrl, Load)>,
    /// Its key in the cache.
    pub key: Key,
    /// The head of the request for the origin, with the client's cache fields, which another host does not get. Its URI is absolute.
    pub head: request::Parts,
    /// The address of the client that is accountable for the work. `None` for a prefetch.
    pub from: Option<IpAddr>,
    /// A trusted proxy sent it (`listen.trusted`).
    pub(crate) is_from_trusted: bool,
    /// Its path needs a password (`site.paths.basic_auth`).
    pub(crate) needs_password: bool,
    /// How it arrived, or how the request arrived that it is prefetched for; `None` if unknown.
    pub arrival: Option<RequestInfo>,
    /// The codings that the client accepts.
    pub accepted_codings: AcceptedCodings,
    /// It is a GET or HEAD with content: the response may depend on more than its target.
    pub has_content: bool,
    /// It is the handshake of a WebSocket.
    pub is_websocket: bool,
    /// Its position if it is a prefetch; `None` for a client's request.
    pub(crate) prefetch_step: Option<PrefetchStep>,
    /// The client gets the origin's response without rewriting: a cookie requests that, or the URL of a sheet that a page pins.
    pub rewriting_disabled: bool,
    /// The host that the client named.
    pub authority: String,
    /// Its span context, or that of the request it is prefetched for; `None` without spans.
    pub span_context: Option<SpanContext>,
    /// Passes early hints of the origin to the client; `None` if it accepts none.
    pub(crate) origin_hints: Option<OriginHints>,
    /// The certificate of the client, which its origin gets; `None` without one, and for resources of other hosts.
    pub(crate) client_certificate: Option<ClientCertificate>,
    /// The rule for its headers and storage; `None` without one, and for resources of other hosts.
    pub(crate) path_rule: Option<Arc<PathRule>>,
    /// How its bodies are passed. For resources of other hosts: no call, and no trailers.
    pub(crate) streams: StreamTraits,
    /// The client's request fields, where the origin gets fewer.
    pub(crate) client_headers: Option<HeaderMap>,
}

impl ProxyRequest {
    /// Reads the request with `head` for `authority`, with all additions for the origin.
    ///
    /// # Errors
    ///
    /// The rule that forbids it.
    pub fn read(
        site: Arc<Site>,
        authority: String,
        head: request::Parts,
    ) -> Result<Self, RequestRejection> {
        IncomingRequest::classify(site, authority, None, head)?.into_upstream_request()
    }

    /// Whether its response is neither stored nor taken from the cache, by a rule of its path.
    pub(crate) fn is_unstored(&self) -> bool {
        let target = self.head.uri.path_and_query();
        self.proxied.is_none()
            && target.is_some_and(|target| self.site.paths.is_unstored(target.as_str()))
    }

    /// A request for the site's own origin, without the fields that are added for the origin.
    pub(super) fn for_site(
        site: Arc<Site>,
        authority: String,
        from: Option<IpAddr>,
        head: request::Parts,
    ) -> Result<Self, RequestRejection> {
        if matches!(head.method, Method::CONNECT | Method::TRACE) {
            return Err(RequestRejection::Method(head.method));
        }
        if forward_headers::has_looped(&head.headers, &site.name) {
            return Err(RequestRejection::Loop);
        }
        let target = request_target(&head);
        let unusable = || RequestRejection::Target(target.to_owned());
        let is_http_scheme = matches!(head.uri.scheme_str(), None | Some("http" | "https"));
        let is_rooted = match target {
            "*" => head.method == Method::OPTIONS,
            target => target.starts_with('/'),
        };
        if !is_http_scheme || !is_rooted {
            return Err(unusable());
        }
        let arrival = head.extensions.get().copied();
        let is_from_trusted = head.extensions.get::<FromTrustedProxy>().is_some();
        let needs_password = head.extensions.get::<NeedsPassword>().is_some();
        let is_socket = websocket_handshake::is_upgrade_request(&head);
        if is_socket {
            site.websocket.ok_or(RequestRejection::WebSocket)?;
            websocket_handshake::check(&head, arrival)?;
        }
        let marked = integrity::strip_unrewritten_mark(target);
        let is_off = marked.is_some() || is_rewriting_disabled(&head.headers);
        // Without rewriting, the key still has the tag of the rules: another configuration may share a tier under the same site name.
        let rules = match is_off {
            true => Cow::Owned(["off ", site.rules.tag()].concat()),
            false => Cow::Borrowed(site.rules.tag()),
        };
        // The origin gets the name and scheme of the request, and its response may depend on them: redirects do.
        let rules = match forward_headers::is_forwarded_origin(
            site.rules.site_origin(),
            &authority,
            arrival,
        ) {
            true => rules,
            false => Cow::Owned(
                [
                    &rules,
                    " ",
                    forward_headers::scheme_of(arrival),
                    "://",
                    &authority,
                ]
                .concat(),
            ),
        };
        let key_target = site.paths.key_target(marked.unwrap_or(target));
        let path_rule = site.paths.of(target).cloned();
        let rules = match &path_rule {
            Some(rule) => Cow::Owned([&rules[..], rule.tag()].concat()),
            None => rules,
        };
        let (scheme, _, port) = site.origin();
        let key = KeyParts {
            site: site.rules.site_origin(),
            scheme,
            host: &lower_case(site.upstream_host(&authority)),
            port,
            target: &key_target,
            rules: &rules,
        };
        let key = Key::new(&key).map_err(|_| unusable())?;
        let streams = StreamTraits::of(&head, path_rule.as_ref().is_some_and(|rule| rule.grpc));
        let client_certificate: Option<ClientCertificate> = head.extensions.get().cloned();
        let mut head = head;
        head.extensions.clear();
        // From an untrusted client these fields are removed before the origin gets the request, so they identify no user.
        let is_identified = match is_from_trusted {
            true => has_proxy_identity(&head.headers),
            false => client_certificate.is_some(),
        };
        if is_identified {
            head.extensions.insert(IdentifiedUser);
        }
        forward_headers::remove_hop_by_hop(&mut head.headers);
        streams.announce(&mut head.headers);
        let accepted_codings = AcceptedCodings::of(&head.headers);
        if !streams.is_grpc {
            let accept_encoding = HeaderValue::from_static(accepted_codings.header_value());
            head.headers
                .insert(header::ACCEPT_ENCODING, accept_encoding);
        }
        Ok(Self {
            site,
            proxied: None,
            key,
            head,
            from,
            is_from_trusted,
            needs_password,
            arrival,
            accepted_codings,
            has_content: false,
            is_websocket: is_socket,
            prefetch_step: None,
            rewriting_disabled: is_off,
            authority,
            span_context: None,
            origin_hints: None,
            client_certificate,
            path_rule,
            streams,
            client_headers: None,
        })
    }

    pub(super) fn for_third_party(
        site: Arc<Site>,
        authority: String,
        from: Option<IpAddr>,
        mut client_request: request::Parts,
    ) -> Result<Self, RequestRejection> {
        let target = request_target(&client_request);
        let is_script = anonymize::is_script(&client_request.headers);
        let opened = site.rules.open(target);
        let opened = opened.map_err(|refusal| match refusal.place(is_script) {
            // Browsers may have pages and sheets from before the rule, and proxied resources reference others by relative URLs.
            Some(to) if anonymize::is_subresource_load(&client_request.headers) => {
                let to = to.to_owned();
                RequestRejection::Redirect {
                    reason: refusal,
                    to,
                }
            }
            _ => refusal.into(),
        })?;
        let guarded = site.pages.guarded_kinds(&site.rules, opened.url());
        let proxied = opened.clone().without(guarded);
        let referer = client_request.headers.get(header::REFERER);
        if referer.is_some_and(|page| {
            page.to_str()
                .is_ok_and(|page| site.pages.hides_referrer(page))
        }) {
            client_request.headers.remove(header::REFERER);
        }
        let arrival = client_request.extensions.get().copied();
        client_request.extensions.clear();
        let client_request = Request::from_parts(client_request, ());
        let upstream =
            anonymize::request(&site.rules, &proxied, &client_request).map_err(|refusal| {
                let refusal = match refusal {
                    Refusal::KindNotListed { kind, host } if guarded.has(kind) => {
                        Refusal::CspGuarded { host }
                    }
                    refusal => refusal,
                };
                let is_redirectable = match refusal {
                    Refusal::CrossSite => anonymize::is_sent_on(&opened, client_request.headers()),
                    Refusal::CspGuarded { .. } => true,
                    // It is relative to a proxied resource, which loads it by its own URL.
                    Refusal::KindNotListed { kind, .. } => {
                        kind != Kind::Script && opened.is_listed()
                    }
                    _ => false,
                };
                match is_redirectable {
                    true => {
                        let to = proxied.url().to_string();
                        RequestRejection::Redirect {
                            reason: refusal,
                            to,
                        }
                    }
                    false => refusal.into(),
                }
            })?;
        let (mut head, ()) = client_request.into_parts();
        let client_headers = std::mem::replace(&mut head.headers, upstream.headers);
        head.method = upstream.method;
        copy_conditions(&client_headers, &mut head.headers);
        let (key, uri) = Self::place_of(&site, &proxied, upstream.load)?;
        head.uri = uri;
        Ok(Self {
            site,
            proxied: Some((proxied, upstream.load)),
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
            rewriting_disabled: false,
            authority,
            span_context: None,
            origin_hints: None,
            client_certificate: None,
            path_rule: None,
            streams: StreamTraits::default(),
            client_headers: Some(client_headers),
        })
    }

    /// The same request for the URL to which a redirect leads.
    ///
    /// # Errors
    ///
    /// The URL is not a valid URI.
    pub fn at_redirect_target(
        &self,
        proxied: ProxiedUrl,
        load: Load,
    ) -> Result<Self, RequestRejection> {
        let (key, uri) = Self::place_of(&self.site, &proxied, load)?;
        let mut next = self.clone();
        (next.key, next.head.uri, next.proxied) = (key, uri, Some((proxied, load)));
        Ok(next)
    }

    fn place_of(
        site: &Site,
        proxied: &ProxiedUrl,
        load: Load,
    ) -> Result<(Key, Uri), RequestRejection> {
        let unusable = || RequestRejection::Target(proxied.target().to_owned());
        let uri = proxied.url().as_str().parse().map_err(|_| unusable())?;
        // A page can read what it loads with CORS. Such a request has an Origin, so its response has its own key.
        let rules = match load.sends_origin() {
            true => format!("{} cors", site.rules.tag()),
            false => site.rules.tag().to_owned(),
        };
        let key = KeyParts {
            site: site.rules.site_origin(),
            scheme: proxied.scheme().name(),
            host: proxied.host(),
            port: proxied.port(),
            target: proxied.target(),
            rules: &rules,
        };
        Ok((Key::new(&key).map_err(|_| unusable())?, uri))
    }

    /// The fields of the request for the origin. Another host gets no cache fields of the client but a single range.
    pub(crate) fn origin_headers(&self) -> HeaderMap {
        let mut headers = self.head.headers.clone();
        if self.proxied.is_some() {
            keep_single_range(&mut headers);
        }
        headers
    }

    /// Whether its origin is the site's own or another host.
    #[must_use]
    pub fn origin_kind(&self) -> OriginKind {
        match self.proxied {
            Some(_) => OriginKind::ThirdParty,
            None => OriginKind::Site,
        }
    }

    /// The rule that may set another origin or path there.
    pub(crate) fn origin_rule(&self) -> Option<&PathRule> {
        let target = self.head.uri.path_and_query()?;
        let rule = self.site.paths.of_origin(target.as_str())?;
        self.proxied.is_none().then_some(&**rule)
    }

    /// Whether a folder of files takes the place of the origin.
    pub(crate) fn is_for_folder(&self) -> bool {
        self.origin_rule().is_some_and(|rule| rule.folder.is_some())
    }

    /// Whether a folder of files takes the place of the origin, or may do so for a server that resolves the target differently.
    pub(crate) fn is_kept_from_origin(&self) -> bool {
        let target = self.head.uri.path_and_query();
        self.proxied.is_none()
            && target.is_some_and(|target| self.site.paths.is_kept_from_origin(target.as_str()))
    }

    /// The URI of the request to the origin: that of the head, with the origin's path in place of the client's.
    #[must_use]
    pub(crate) fn origin_uri(&self) -> Uri {
        let uri = &self.head.uri;
        let (Some(rule), Some(target)) = (self.origin_rule(), uri.path_and_query()) else {
            return uri.clone();
        };
        let Cow::Owned(target) = rule.origin_target(target.as_str()) else {
            return uri.clone();
        };
        let mut parts = uri.clone().into_parts();
        parts.path_and_query = target.parse().ok();
        Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
    }

    /// The URL at its own host; for the site's own, with the first of its names.
    #[must_use]
    pub fn url(&self) -> Option<url::Url> {
        match &self.proxied {
            Some((proxied, _)) => Some(proxied.url().clone()),
            None => {
                let target = self.head.uri.path_and_query()?;
                // Not joined: a path that begins with two slashes would name a host.
                url::Url::parse(&format!("{}{target}", self.site.rules.site_origin())).ok()
            }
        }
    }

    /// The URL with the name and scheme that the client uses: its browser resolves references from there.
    #[must_use]
    pub fn client_url(&self) -> Option<url::Url> {
        if self.proxied.is_some() {
            return self.url();
        }
        let home = client_origin_text(&self.site, self.arrival, &self.authority)?;
        let target = self.head.uri.path_and_query()?;
        url::Url::parse(&format!("{home}{target}")).ok()
    }

    /// The origin at which the client requested it: the site, by one of its names and either scheme.
    #[must_use]
    pub fn client_origin(&self) -> Option<url::Origin> {
        client_origin(&self.site, self.arrival, &self.authority)
    }

    /// Changes redirects to the origin's own name, and to the site over `http`, so that they lead to the client's origin of the site.
    pub(crate) fn rewrite_location(&self, headers: &mut HeaderMap) {
        let home = client_origin_text(&self.site, self.arrival, &self.authority);
        let home = home.unwrap_or(Cow::Borrowed(self.site.rules.site_origin()));
        self.site
            .rewrite_location(&home, self.client_url().as_ref(), headers);
    }

    /// The page policy in `headers` of the response, for later requests; `None` if it is no page of the site's own.
    pub(crate) fn page_policy(&self, headers: &HeaderMap) -> Option<PagePolicy> {
        if self.proxied.is_some() || !guard::may_run_scripts(headers) {
            return None; // most responses
        }
        Some(PagePolicy::from_head(
            &self.site.rules,
            &self.client_url()?,
            headers,
        ))
    }

    /// Records the policy of the response, if it is a page.
    pub(crate) fn record_policy(&self, policy: Option<PagePolicy>) {
        if let Some(policy) = policy {
            self.site.pages.record_head(|| self.client_url(), policy);
        }
    }

    /// Records the policy in `headers` of the response, if it is a page.
    pub fn record_policy_of(&self, headers: &HeaderMap) {
        self.record_policy(self.page_policy(headers));
    }

    /// The client's request fields, whether or not the origin gets them.
    #[must_use]
    pub fn client_headers(&self) -> &HeaderMap {
        self.client_headers.as_ref().unwrap_or(&self.head.headers)
    }

    /// Whether the client sends `body` only after a 100 (Continue) response (RFC 9110 §10.1.1).
    pub(crate) fn expects_continue(&self, body: &Body) -> bool {
        expects_continue(self.client_headers()) && !http_body::Body::is_end_stream(body)
    }

    /// The kind of resource that it is for, if the client states it.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match self.client_headers().get("sec-fetch-dest")?.as_bytes() {
            b"style" => Some(Kind::Style),
            b"script" => Some(Kind::Script),
            b"font" => Some(Kind::Font),
            b"image" => Some(Kind::Image),
            b"audio" | b"video" | b"track" => Some(Kind::Media),
            b"iframe" | b"frame" if self.is_alias() => Some(Kind::Document),
            _ => None,
        }
    }

    /// The fields of the client that it will send again for the resources that the response names.
    #[must_use]
    pub fn subresource_headers(&self) -> HeaderMap {
        let client_headers = self.client_headers();
        let mut headers = HeaderMap::new();
        for name in [
            "accept-encoding",
            "accept-language",
            "user-agent",
            "sec-fetch-dest",
        ] {
            if let Some(value) = client_headers.get(name) {
                headers.insert(HeaderName::from_static(name), value.clone());
            }
        }
        headers
    }
}

/// Copies the fields of `client_headers` that the cache evaluates to `headers`, the headers for another host.
pub(crate) fn copy_conditions(client_headers: &HeaderMap, headers: &mut HeaderMap) {
    for name in CACHE_REQUEST_FIELDS {
        for value in client_headers.get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
}

fn lower_case(host: &str) -> Cow<'_, str> {
    match host.bytes().any(|byte| byte.is_ascii_uppercase()) {
        true => Cow::Owned(host.to_ascii_lowercase()),
        false => Cow::Borrowed(host),
    }
}

/// This cookie disables rewriting, to debug a site.
const REWRITING_OFF_COOKIE: &[u8] = b"spdy=off";

/// Whether the client has disabled rewriting.
#[must_use]
pub fn is_rewriting_disabled(headers: &HeaderMap) -> bool {
    headers
        .get_all(header::COOKIE)
        .iter()
        .flat_map(|cookies| cookies.as_bytes().split(|byte| *byte == b';'))
        .any(|cookie| cookie.trim_ascii() == REWRITING_OFF_COOKIE)
}
