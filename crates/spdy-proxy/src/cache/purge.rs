//! Purges stored responses: because the operator requests it, or because a request changed them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Uri, response};
use parking_lot::{Mutex, MutexGuard};
use spdy_cache::invalidate::{invalidated_by, is_safe};
use spdy_cache::key::{Key, KeyParts, Scope};
use spdy_cache::memory_store::PurgeMode;
use spdy_cache::purge_tags::{PurgeTag, invalidated_groups};
use spdy_cache::shared_tier::{PurgeTarget, PurgeVersion};
use spdy_rewrite::reference::integrity;

use crate::admin::handler;
use crate::cache::shared_response::CoalesceKey;
use crate::proxy::Proxy;
use crate::request::proxy_request::ProxyRequest;
use crate::sites::site_table::{Site, Sites};

/// How many objects a purge meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PurgeCount(pub usize);

/// The state of purges when a fetch begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PurgeSnapshot {
    /// The count of purges in this process.
    pub(crate) purges: u64,
    /// The purge version of the shared tier.
    pub(crate) mark: PurgeVersion,
}

/// Most groups that one response may invalidate; with more, its whole origin is purged (RFC 9875 §2.1 requires at least 32).
const MAX_GROUPS: usize = 32;
/// Purges that are remembered. A response is not stored if its fetch began before all of them.
const MAX_PURGES: usize = 1024;

/// The last purges: a fetch that began before one of them must not store again what it removed.
#[derive(Debug, Default)]
pub(crate) struct PurgeLog(Mutex<PurgeLogState>);

#[derive(Debug, Default)]
struct PurgeLogState {
    /// All purges so far.
    count: u64,
    /// For each recent purge: the prefix of its keys, or of the keys that can have its tag.
    last: VecDeque<Vec<u8>>,
}

impl PurgeLog {
    /// The count of purges so far.
    pub(crate) fn now(&self) -> u64 {
        self.lock().count
    }

    /// Whether a purge after count `since` matched `key`, or may have.
    pub(crate) fn purged_since(&self, key: &Key, since: u64) -> bool {
        let log = self.lock();
        let passed = usize::try_from(log.count - since).unwrap_or(usize::MAX);
        if passed > log.last.len() {
            return true;
        }
        let mut last = log.last.iter().rev().take(passed);
        last.any(|prefix| key.as_bytes().starts_with(prefix))
    }

    fn record(&self, prefix: Vec<u8>) {
        let mut log = self.lock();
        log.count += 1;
        log.last.push_back(prefix);
        if log.last.len() > MAX_PURGES {
            log.last.pop_front();
        }
    }

    fn lock(&self) -> MutexGuard<'_, PurgeLogState> {
        self.0.lock()
    }
}

impl Proxy {
    /// Purges memory and disk. Gives the number of objects purged in memory.
    fn purge_local(&self, meant: &PurgeTarget, how: PurgeMode) -> usize {
        let count = match meant {
            PurgeTarget::Prefix(prefix) => {
                self.purge_derived(prefix);
                if let Some(disk) = self.disk() {
                    disk.purge(prefix);
                }
                self.memory.purge(prefix, how)
            }
            PurgeTarget::Tag(tag) => {
                self.purge_derived(&tag.prefix());
                if let Some(disk) = self.disk() {
                    disk.purge_tag(tag);
                }
                self.memory.purge_tag(tag, how)
            }
        };
        if count > 0 {
            self.prefetcher.seen.clear();
        }
        count
    }

    /// Requests that come now do not use pending fetches, negative entries or backoff of keys that begin with `prefix`.
    fn purge_derived(&self, prefix: &[u8]) {
        self.purges.record(prefix.to_vec());
        let first = CoalesceKey::of(&Key::range_start(Bytes::copy_from_slice(prefix)));
        self.coalescer
            .detach_from(&first, |berth| berth.key().as_bytes().starts_with(prefix));
        self.negative.purge(prefix);
        self.prefetcher.backoff.purge(prefix);
    }

    /// Purges `meant` in every tier, for all machines that share one. Gives the number of objects purged in memory here.
    fn purge_all(&self, meant: PurgeTarget, how: PurgeMode) -> usize {
        let count = self.purge_local(&meant, how);
        if let Some(shared) = self.shared() {
            shared.purge(meant, matches!(how, PurgeMode::Soft(_)));
        }
        count
    }

    /// Purges the keys of a scope.
    fn purge_scope(&self, scope: &Scope<'_>, how: PurgeMode) -> usize {
        let Ok(prefix) = scope.prefix().map(Bytes::from) else {
            // The prefix of a key has no zero byte.
            return 0;
        };
        if let (Some(shared), Scope::Url(_)) = (self.shared(), scope) {
            // The key of one URL is removed at once: it need not stay until it expires.
            shared.remove(&prefix);
        }
        self.purge_all(PurgeTarget::Prefix(prefix), how)
    }

    /// Applies a purge of another machine that shares the tier. If it is `soft`, the objects become stale.
    pub fn apply_remote_purge(&self, meant: &PurgeTarget, soft: bool) {
        let how = match soft {
            true => PurgeMode::Soft(self.wall_now()),
            false => PurgeMode::Hard,
        };
        let count = self.purge_local(meant, how);
        tracing::debug!(count, soft, "another purged");
    }

    /// Invalidates what a request changed, by the head of its response (RFC 9111 §4.4).
    pub(crate) fn invalidate_after(&self, wanted: &ProxyRequest, head: &response::Parts) {
        let method = &wanted.ask.method;
        let public = [wanted.url(), wanted.client_url()].into_iter().flatten();
        let public = public.filter_map(|url| url.as_str().parse().ok());
        // The response may name URLs by one of the site's names or by the origin's.
        for uri in std::iter::once(wanted.ask.uri.clone()).chain(public) {
            for uri in invalidated_by(method, &uri, head.status, &head.headers) {
                self.invalidate(wanted, &uri);
            }
        }
        let is_good = head.status.is_success() || head.status.is_redirection();
        if is_good && !is_safe(method) {
            self.invalidate_groups(wanted, &head.headers);
        }
    }

    /// Purges the groups that the response invalidates, of its own origin only (RFC 9875 §3). The shared tier is purged too: otherwise
    /// other machines would bring the objects back.
    fn invalidate_groups(&self, wanted: &ProxyRequest, headers: &HeaderMap) {
        for parts in key_parts(wanted, "/") {
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

    /// Removes all stored responses for `uri` at the origin of `wanted`.
    fn invalidate(&self, wanted: &ProxyRequest, uri: &Uri) {
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        for parts in key_parts(wanted, target) {
            if let Ok(url) = Scope::Url(parts).prefix().map(Bytes::from) {
                self.purge_local(&PurgeTarget::Prefix(url.clone()), PurgeMode::Hard);
                if let Some(shared) = self.shared() {
                    shared.remove(&url);
                }
            }
        }
    }

    /// Purges what the operator requests.
    ///
    /// # Errors
    ///
    /// What is wrong with the request.
    pub fn purge(&self, wish: &handler::PurgeRequest) -> Result<PurgeCount, String> {
        let how = match wish.soft {
            true => PurgeMode::Soft(self.wall_now()),
            false => PurgeMode::Hard,
        };
        let sites = self.sites();
        let of_site = match &wish.site {
            Some(name) => {
                let site = sites.find(name).cloned();
                Some(site.ok_or_else(|| format!("no site is called {name}"))?)
            }
            None => None,
        };
        let count = match (&wish.url, &wish.prefix, &wish.tag, &of_site) {
            (Some(url), None, None, _) => {
                self.purge_url(&sites, of_site.as_ref(), url, how, true)?
            }
            (None, Some(url), None, _) => {
                self.purge_url(&sites, of_site.as_ref(), url, how, false)?
            }
            (None, None, Some(tag), Some(site)) => {
                let tag = PurgeTag::of_site(site.rules.site_origin(), tag);
                self.purge_all(PurgeTarget::Tag(tag), how)
            }
            (None, None, None, Some(site)) => {
                self.purge_scope(&Scope::Site(site.rules.site_origin()), how)
            }
            (None, None, Some(_), None) => return Err("a tag wants a site".to_owned()),
            _ => return Err("want one of url, prefix, tag, or a site alone".to_owned()),
        };
        Ok(PurgeCount(count))
    }

    fn purge_url(
        &self,
        sites: &Sites,
        of_site: Option<&Arc<Site>>,
        url: &str,
        how: PurgeMode,
        is_whole: bool,
    ) -> Result<usize, String> {
        let url = url::Url::parse(url).map_err(|error| format!("{url:?} is no URL: {error}"))?;
        let url = sites.original_url(url).map_err(|why| {
            format!("{why}: want the URL of the host itself, or one that a page here names")
        })?;
        let (Some(host), Some(port)) = (url.host_str(), url.port_or_known_default()) else {
            return Err(format!("{url} is no URL of the web"));
        };
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let own = sites.find(host);
        let mut count = 0;
        let all = sites
            .all()
            .filter(|site| of_site.is_none_or(|only| Arc::ptr_eq(only, site)));
        for site in all {
            let mut scopes = Vec::new();
            let (scheme, _, origin_port) = site.origin();
            let is_own = own.is_some_and(|own| Arc::ptr_eq(own, site));
            let as_it_came = integrity::strip_unrewritten_mark(target).filter(|_| is_own);
            let target = as_it_came.unwrap_or(target);
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
                    target,
                    rules: "",
                };
                count += match is_whole {
                    true => self.purge_scope(&Scope::Url(parts), how),
                    false => self.purge_scope(&Scope::Prefix(parts), how),
                };
            }
            if is_whole && !is_own {
                // Responses for other URLs that redirect here.
                let led =
                    PurgeTag::of_site(site.rules.site_origin(), &url[..url::Position::AfterQuery]);
                count += self.purge_all(PurgeTarget::Tag(led), how);
            }
        }
        Ok(count)
    }
}

/// The key parts of `target` at the origin of `wanted`: one for each host name of that origin.
fn key_parts<'a>(wanted: &'a ProxyRequest, target: &'a str) -> Vec<KeyParts<'a>> {
    let site = &wanted.site;
    let parts = |(scheme, host, port)| KeyParts {
        site: site.rules.site_origin(),
        scheme,
        host,
        port,
        target,
        rules: "",
    };
    match &wanted.moved {
        Some((moved, _)) => vec![parts((moved.scheme().name(), moved.host(), moved.port()))],
        None => {
            let (scheme, _, port) = site.origin();
            let hosts = site.upstream_hosts();
            hosts.map(|host| parts((scheme, host, port))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_key::key;

    #[test]
    fn response_purged_during_fetch_is_not_stored() {
        let purges = PurgeLog::default();
        let before = purges.now();
        assert!(!purges.purged_since(&key("/a"), before));
        let prefix = key("/a").as_bytes()[..20].to_vec();
        purges.record(prefix);
        assert!(purges.purged_since(&key("/a"), before));
        let after = purges.now();
        assert!(!purges.purged_since(&key("/a"), after), "it began later");
        purges.record(b"https://other.test".to_vec());
        assert!(!purges.purged_since(&key("/a"), after), "another site's");
        let group = b"any".to_vec();
        let tag = PurgeTag::Origin {
            origin: key("/a").origin().to_vec(),
            group,
        };
        purges.record(tag.prefix());
        assert!(
            purges.purged_since(&key("/a"), after),
            "all of its origin may have it"
        );
        let late = purges.now();
        for _ in 0..=MAX_PURGES {
            purges.record(b"https://other.test".to_vec());
        }
        assert!(
            purges.purged_since(&key("/a"), late),
            "more than are remembered"
        );
        assert!(!purges.purged_since(&key("/a"), late + 1));
    }
}
