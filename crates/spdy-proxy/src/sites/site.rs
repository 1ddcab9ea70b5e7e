//! One site: its names, its origin, its rewrite rules, and the host names and URLs that its origin gets.

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Uri, header};
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::host_aliases::HostAlias;
use spdy_rewrite::rules::site_names;
use url::Url;

use crate::config::servers::{HealthConfig, ServerAddress};
use crate::config::websocket::WebSocketConfig;
use crate::sites::error_pages::ErrorPages;
use crate::sites::page_policies::PagePolicies;
use crate::sites::path_rules::PathRules;
use crate::telemetry::site_counters::SiteCounters;

/// A server of a site's origin.
#[derive(Clone, Debug)]
pub(crate) struct SiteServer {
    pub(crate) address: ServerAddress,
    pub(crate) weight: u32,
}

impl SiteServer {
    /// The server at the place of the URL `origin`.
    pub(crate) fn of_origin(origin: &Url) -> Self {
        let host = origin.host_str().unwrap_or_default();
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = origin.port_or_known_default().unwrap_or_default();
        Self {
            address: ServerAddress::Tcp(host, port),
            weight: 1,
        }
    }
}

/// One site, as requests need it.
#[derive(Clone, Debug)]
pub struct Site {
    /// The first of its names.
    pub name: String,
    pub(super) names: Vec<String>,
    /// The URL of its origin.
    pub(super) origin: Url,
    pub(super) preserve_host: bool,
    /// The servers of its origin, if it has several.
    pub(crate) servers: Vec<SiteServer>,
    pub(super) health: Option<HealthConfig>,
    /// Whether private responses may be compressed.
    pub(crate) compress_private: bool,
    /// The limits of WebSockets to its origin; `None` if they are not allowed.
    pub(crate) websocket: Option<WebSocketConfig>,
    /// Whether requests without TLS are redirected.
    pub(super) redirects_to_https: bool,
    /// `Strict-Transport-Security` of its responses over TLS.
    pub(crate) hsts: Option<HeaderValue>,
    /// The pages in place of the proxy's own error messages.
    pub(crate) error_pages: ErrorPages,
    /// Rules for its paths.
    pub(crate) paths: PathRules,
    /// The limits for its stored bytes in memory and on the disk, if configured.
    pub(super) quotas: (Option<u64>, Option<u64>),
    /// The rules for rewriting.
    pub rules: Arc<Rules>,
    /// The policies of its pages.
    pub pages: Arc<PagePolicies>,
    /// Counters of its requests and its origin.
    pub counters: Arc<SiteCounters>,
}

impl Site {
    /// The URI of the site's own `target` (path and query), for a client that named `authority`.
    ///
    /// # Errors
    ///
    /// They do not make a valid URI.
    pub fn own(&self, authority: &str, target: &str) -> Result<Uri, http::Error> {
        let rule = self.paths.of_origin(target);
        let own = rule.and_then(|rule| rule.origin());
        let origin = own.unwrap_or(&self.origin);
        let host = match self.preserve_host {
            true => host_of(authority),
            false => origin.host_str().unwrap_or_default(),
        };
        let authority = match origin.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let uri = Uri::builder().scheme(origin.scheme());
        uri.authority(authority).path_and_query(target).build()
    }

    /// The host name that its origin gets, for a client that named `authority`.
    #[must_use]
    pub fn upstream_host<'a>(&'a self, authority: &'a str) -> &'a str {
        match self.preserve_host {
            true => host_of(authority),
            false => self.origin.host_str().unwrap_or_default(),
        }
    }

    /// The URL over TLS that a request without TLS for `target` at `authority` is redirected to; `None` if it is not. No request without TLS
    /// may reach the origin: the target `*` of OPTIONS is the URL without a path (RFC 9110 §7.1).
    #[must_use]
    pub fn https_url(&self, authority: &str, target: &str) -> Option<String> {
        if !self.redirects_to_https {
            return None;
        }
        let target = Some(target).filter(|target| target.starts_with('/'));
        let target = target.unwrap_or_default();
        let public = Url::parse(self.rules.site_origin()).ok();
        let port = public
            .filter(|url| url.scheme() == "https")
            .and_then(|url| url.port());
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        Some(format!("https://{}{port}{target}", host_of(authority)))
    }

    /// How its servers are checked, and the URI of the request; `None` if they are not.
    pub(crate) fn health_target(&self) -> Option<(HealthConfig, Uri)> {
        let health = self.health.clone()?;
        let target = self.own(&self.name, &health.path).ok()?;
        Some((health, target))
    }

    /// The `Host` field for its origin, from a client that named `authority`, if it differs from the contacted place. The port is the
    /// client's, since the origin uses it to make URLs for clients.
    #[must_use]
    pub fn host_header(&self, authority: &str) -> Option<HeaderValue> {
        let host = self.preserve_host.then(|| HeaderValue::try_from(authority));
        host?.ok()
    }

    /// The alias with the name `authority`, which may have a port, if it is one of this site.
    #[must_use]
    pub fn named(&self, authority: &str) -> Option<&HostAlias> {
        self.rules.zone()?;
        self.rules.named(&host_of(authority).to_ascii_lowercase())
    }

    /// The URL of its origin.
    #[must_use]
    pub fn origin_url(&self) -> &Url {
        &self.origin
    }

    /// All names, the first name first, wildcards included.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Whether one of its names matches `host`, which is in lower case.
    fn has_name(&self, host: &str) -> bool {
        let mut names = self.names.iter();
        names.any(|name| site_names::matches(name, host))
    }

    /// The host names that its origin gets.
    pub fn upstream_hosts(&self) -> impl Iterator<Item = &str> {
        let named = self.names.iter().filter(|_| self.preserve_host);
        let own = self.origin.host_str().filter(|_| !self.preserve_host);
        named.map(String::as_str).chain(own)
    }

    /// Changes redirects to the origin's own name so that they lead to `home`, the client's origin of the site. If `home` is over `https`,
    /// redirects to a name of the site over `http` lead to `https` instead, unless they would lead back to `requested`.
    pub fn rewrite_location(&self, home: &str, requested: Option<&Url>, headers: &mut HeaderMap) {
        let target = requested.map(|url| &url[url::Position::BeforePath..]);
        let rule = target.and_then(|target| self.paths.of_origin(target));
        let origin = rule.and_then(|rule| rule.origin()).unwrap_or(&self.origin);
        for name in [header::LOCATION, header::CONTENT_LOCATION] {
            let location = headers.get(&name).and_then(|value| value.to_str().ok());
            let Some(location) = location else {
                continue;
            };
            let client_target =
                |target| rule.map_or(Cow::from(target), |rule| rule.client_target(target));
            let Ok(url) = Url::parse(location) else {
                // A relative URL leads to the site. Only its path may be another one there.
                if location.starts_with('/')
                    && !location.starts_with("//")
                    && let Cow::Owned(place) = client_target(location)
                    && !place.starts_with("//")
                    && let Ok(value) = HeaderValue::try_from(place)
                {
                    headers.insert(name, value);
                }
                continue;
            };
            let place = if url.origin() == origin.origin() {
                let target = client_target(&url[url::Position::BeforePath..]);
                Some(format!("{home}{target}"))
            } else {
                self.over_https(home, requested, url)
            };
            if let Some(Ok(value)) = place.map(HeaderValue::try_from) {
                headers.insert(name, value);
            }
        }
    }

    /// `url` over `https`, if it is the site's own over `http` and the client is at `home` over `https`.
    fn over_https(&self, home: &str, requested: Option<&Url>, url: Url) -> Option<String> {
        let home = Url::parse(home).ok()?;
        let is_over_http = url.scheme() == "http" && url.port().is_none();
        let is_own = url.host_str().is_some_and(|host| self.has_name(host));
        if home.scheme() != "https" || !is_over_http || !is_own {
            return None;
        }
        let mut secure = url;
        secure.set_scheme("https").ok()?;
        secure.set_port(home.port()).ok()?;
        let target = |url: &Url| url[..url::Position::AfterQuery].to_owned();
        // With an origin that redirects from `https` to `http`, the redirect would be a loop.
        let is_circle = requested.is_some_and(|requested| target(requested) == target(&secure));
        (!is_circle).then(|| secure.into())
    }

    /// Scheme, host and port of the origin; the default port if its URL has none.
    #[must_use]
    pub fn origin(&self) -> (&str, &str, u16) {
        let port = self.origin.port_or_known_default().unwrap_or_default();
        let host = self.origin.host_str().unwrap_or_default();
        (self.origin.scheme(), host, port)
    }
}

/// The host of `authority`, which may have a port.
pub(super) fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if is_port(port) => host,
        _ => authority,
    }
}

/// Whether `text` is a port, or empty, which means the default port (RFC 3986 §3.2.3).
fn is_port(text: &str) -> bool {
    let is_of_digits = text.bytes().all(|byte| byte.is_ascii_digit());
    is_of_digits && (text.is_empty() || text.parse::<u16>().is_ok())
}
