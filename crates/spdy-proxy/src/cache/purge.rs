//! Purges stored responses: because the operator requests it, or because a request changed them.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Uri, response};
use serde::Deserialize;
use spdy_cache::invalidate::{invalidated_by, is_safe};
use spdy_cache::key::{Key, KeyParts, Scope};
use spdy_cache::memory_store::PurgeMode;
use spdy_cache::purge_tags::{PurgeTag, invalidated_groups};
use spdy_cache::shared_tier::PurgeTarget;
use spdy_rewrite::reference::integrity;

use crate::cache::shared_response::CoalesceKey;
use crate::cache::tiers::Cache;
use crate::request::proxy_request::ProxyRequest;
use crate::sites::site::Site;
use crate::sites::site_table::Sites;

/// What is to be purged. One of `url`, `prefix`, `tag`, or `site` alone.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PurgeRequest {
    /// One URL: all its variants.
    pub url: Option<String>,
    /// All URLs that begin with this.
    pub prefix: Option<String>,
    /// All responses with this `Surrogate-Key` or `Cache-Tag`; `site` selects the site.
    pub tag: Option<String>,
    /// A name of the site.
    pub site: Option<String>,
    /// Stored responses become stale instead of being removed.
    pub soft: bool,
    /// The response is sent when the purge is complete.
    pub wait: bool,
}

/// The number of objects in memory that a purge matched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PurgeCount(pub usize);

/// Maximum number of groups that one response may invalidate; with more, its whole origin is purged (RFC 9875 §2.1 requires at least 32).
const MAX_GROUPS: usize = 32;

impl Cache {
    /// Purges memory and disk. Gives the number of objects purged in memory.
    fn purge_local(&self, target: &PurgeTarget, mode: PurgeMode) -> usize {
        let count = match target {
            PurgeTarget::Prefix(prefix) => {
                self.purge_derived(prefix);
                if let Some(disk) = self.disk() {
                    disk.purge(prefix);
                }
                self.memory.purge(prefix, mode)
            }
            PurgeTarget::Tag(tag) => {
                self.purge_derived(&tag.prefix());
                if let Some(disk) = self.disk() {
                    disk.purge_tag(tag);
                }
                self.memory.purge_tag(tag, mode)
            }
        };
        if count > 0 {
            self.purge_observer.forget_stored();
        }
        count
    }

    /// Requests that come now do not use pending fetches, negative entries or backoff of keys that begin with `prefix`.
    fn purge_derived(&self, prefix: &[u8]) {
        self.purge_log.record(prefix.to_vec());
        let first = CoalesceKey::of(&Key::range_start(Bytes::copy_from_slice(prefix)));
        self.coalescer
            .detach_from(&first, |key| key.key().as_bytes().starts_with(prefix));
        self.negative.purge(prefix);
        self.purge_observer.forget_prefix(prefix);
    }

    /// Purges `target` in every tier, for all machines that share one. Gives the number of objects purged in memory here.
    fn purge_all(&self, target: PurgeTarget, mode: PurgeMode) -> usize {
        let count = self.purge_local(&target, mode);
        if let Some(shared) = self.shared() {
            shared.purge(target, matches!(mode, PurgeMode::Soft(_)));
        }
        count
    }

    /// Purges the keys of a scope.
    fn purge_scope(&self, scope: &Scope<'_>, mode: PurgeMode) -> usize {
        let Ok(prefix) = scope.prefix().map(Bytes::from) else {
            // The prefix of a key has no zero byte.
            return 0;
        };
        if let (Some(shared), Scope::Url(_)) = (self.shared(), scope) {
            // The key of one URL is removed at once: it need not stay until it expires.
            shared.remove(&prefix);
        }
        self.purge_all(PurgeTarget::Prefix(prefix), mode)
    }

    /// Applies a purge of another machine that shares the tier. If it is `soft`, the objects become stale.
    pub fn apply_remote_purge(&self, target: &PurgeTarget, soft: bool) {
        let mode = match soft {
            true => PurgeMode::Soft(self.clock.wall_now()),
            false => PurgeMode::Hard,
        };
        let count = self.purge_local(target, mode);
        tracing::debug!(count, soft, "applied purges of another machine");
    }

    /// Invalidates what a request changed, by the head of its response (RFC 9111 §4.4).
    pub(crate) fn invalidate_after(&self, request: &ProxyRequest, head: &response::Parts) {
        let method = &request.head.method;
        let public = [request.url(), request.client_url()].into_iter().flatten();
        let public = public.filter_map(|url| url.as_str().parse().ok());
        // The response may name URLs by one of the site's names or by the origin's.
        for uri in std::iter::once(request.head.uri.clone()).chain(public) {
            for uri in invalidated_by(method, &uri, head.status, &head.headers) {
                self.invalidate(request, &uri);
            }
        }
        let is_good = head.status.is_success() || head.status.is_redirection();
        if is_good && !is_safe(method) {
            self.invalidate_groups(request, &head.headers);
        }
    }

    /// Purges the groups that the response invalidates, of its own origin only (RFC 9875 §3). The shared tier is purged too: otherwise
    /// other machines would bring the objects back.
    fn invalidate_groups(&self, request: &ProxyRequest, headers: &HeaderMap) {
        for parts in key_parts(request, "/") {
            let Ok(key) = Key::new(&parts) else { continue };
            let groups = invalidated_groups(&key, headers);
            if groups.len() > MAX_GROUPS {
                let origin = [key.origin(), &[0]].concat();
                self.purge_all(PurgeTarget::Prefix(origin.into()), PurgeMode::Hard);
                continue;
            }
            for group in groups {
                self.purge_all(PurgeTarget::Tag(group), PurgeMode::Hard);
            }
        }
    }

    /// Removes all stored responses for `uri` at the origin of `request`.
    fn invalidate(&self, request: &ProxyRequest, uri: &Uri) {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        let key_target = match request.proxied {
            Some(_) => target.into(),
            None => request.site.paths.key_target(target),
        };
        for parts in key_parts(request, &key_target) {
            if let Ok(url) = Scope::Url(parts).prefix().map(Bytes::from) {
                self.purge_local(&PurgeTarget::Prefix(url.clone()), PurgeMode::Hard);
                if let Some(shared) = self.shared() {
                    shared.remove(&url);
                }
            }
        }
    }

    /// Purges what the operator requests of `sites`.
    ///
    /// # Errors
    ///
    /// What is wrong with the request.
    pub fn purge(&self, sites: &Sites, request: &PurgeRequest) -> Result<PurgeCount, String> {
        let mode = match request.soft {
            true => PurgeMode::Soft(self.clock.wall_now()),
            false => PurgeMode::Hard,
        };
        let site_filter = match &request.site {
            Some(name) => {
                let site = sites.find(name).cloned();
                Some(site.ok_or_else(|| format!("unknown site {name}"))?)
            }
            None => None,
        };
        let count = match (&request.url, &request.prefix, &request.tag, &site_filter) {
            (Some(url), None, None, _) => {
                self.purge_url(sites, site_filter.as_ref(), url, mode, true)?
            }
            (None, Some(url), None, _) => {
                self.purge_url(sites, site_filter.as_ref(), url, mode, false)?
            }
            (None, None, Some(tag), Some(site)) => {
                let tag = PurgeTag::of_site(site.rules.site_origin(), tag);
                self.purge_all(PurgeTarget::Tag(tag), mode)
            }
            (None, None, None, Some(site)) => {
                self.purge_scope(&Scope::Site(site.rules.site_origin()), mode)
            }
            (None, None, Some(_), None) => return Err("a tag needs a site".to_owned()),
            _ => return Err("expected one of url, prefix and tag, or only a site".to_owned()),
        };
        Ok(PurgeCount(count))
    }

    fn purge_url(
        &self,
        sites: &Sites,
        site_filter: Option<&Arc<Site>>,
        url: &str,
        mode: PurgeMode,
        is_exact: bool,
    ) -> Result<usize, String> {
        let url = url::Url::parse(url).map_err(|error| format!("{url:?} is not a URL: {error}"))?;
        let url = sites.original_url(url).map_err(|refusal| {
            format!("{refusal}: expected the URL of the host itself, or one from a rewritten page")
        })?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("{url} is not an http or https URL"));
        };
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let own = sites.find(host);
        let mut count = 0;
        let all = sites
            .all()
            .filter(|site| site_filter.is_none_or(|only| Arc::ptr_eq(only, site)));
        for site in all {
            let mut scopes = Vec::new();
            let (scheme, _, origin_port) = site.origin();
            let is_own = own.is_some_and(|own| Arc::ptr_eq(own, site));
            let unmarked = integrity::strip_unrewritten_mark(target).filter(|_| is_own);
            let target = unmarked.unwrap_or(target);
            let key_target = match is_own && is_exact {
                true => site.paths.key_target(target),
                false => target.into(),
            };
            if is_own {
                scopes.extend(
                    site.upstream_hosts()
                        .map(|host| (scheme, host, origin_port)),
                );
            } else {
                scopes.push((url.scheme(), host, port));
            }
            for (scheme, host, port) in scopes {
                let parts = KeyParts {
                    site: site.rules.site_origin(),
                    scheme,
                    host,
                    port,
                    target: &key_target,
                    rules: "",
                };
                count += match is_exact {
                    true => self.purge_scope(&Scope::Url(parts), mode),
                    false => self.purge_scope(&Scope::Prefix(parts), mode),
                };
            }
            if is_exact && !is_own {
                // Responses for other URLs that redirect to this one.
                let redirected =
                    PurgeTag::of_site(site.rules.site_origin(), &url[..url::Position::AfterQuery]);
                count += self.purge_all(PurgeTarget::Tag(redirected), mode);
            }
        }
        Ok(count)
    }
}

/// The key parts of `target` at the origin of `request`: one for each host name of that origin.
fn key_parts<'a>(request: &'a ProxyRequest, target: &'a str) -> Vec<KeyParts<'a>> {
    let site = &request.site;
    let parts = |(scheme, host, port)| KeyParts {
        site: site.rules.site_origin(),
        scheme,
        host,
        port,
        target,
        rules: "",
    };
    match &request.proxied {
        Some((proxied, _)) => vec![parts((
            proxied.scheme().name(),
            proxied.host(),
            proxied.port(),
        ))],
        None => {
            let (scheme, _, port) = site.origin();
            let hosts = site.upstream_hosts();
            hosts.map(|host| parts((scheme, host, port))).collect()
        }
    }
}
