//! What is no longer to be used of what is kept: because the operator says so, or because a request changed it.

use std::sync::Arc;

use http::Uri;
use spdy_cache::key::{Parts, Scope};
use spdy_cache::store::Purge;
use spdy_cache::tags::Tag;

use crate::admin;
use crate::proxy::Proxy;
use crate::sites::{Site, Sites};

/// How many objects a purge meant.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Purged(pub usize);

impl Proxy {
    /// Purges a scope in every tier; how many objects of memory were meant.
    fn purge_scope(&self, scope: &Scope<'_>, how: Purge) -> usize {
        if let Some(disk) = self.disk() {
            disk.purge(scope);
        }
        self.memory.purge(scope, how)
    }

    /// Nothing that is kept of `uri`, of the site's own, is used any more.
    pub(crate) fn doubt(&self, site: &Site, uri: &Uri) {
        let (scheme, _, port) = site.origin();
        for host in site.asked_hosts() {
            let parts = Parts {
                site: site.rules.site_origin(),
                scheme,
                host,
                port,
                target: uri.path_and_query().map_or("/", |target| target.as_str()),
                rules: "",
            };
            self.purge_scope(&Scope::Url(parts), Purge::Hard);
        }
    }

    /// Purges what the operator wants gone.
    ///
    /// # Errors
    ///
    /// What is wrong with the wish.
    pub fn purge(&self, wish: &admin::Purge) -> Result<Purged, String> {
        let how = match wish.soft {
            true => Purge::Soft(self.hour()),
            false => Purge::Hard,
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
                let tag = Tag::of_site(site.rules.site_origin(), tag);
                if let Some(disk) = self.disk() {
                    disk.purge_tag(&tag);
                }
                self.memory.purge_tag(&tag, how)
            }
            (None, None, None, Some(site)) => {
                self.purge_scope(&Scope::Site(site.rules.site_origin()), how)
            }
            (None, None, Some(_), None) => return Err("a tag wants a site".to_owned()),
            _ => return Err("want one of url, prefix, tag, or a site alone".to_owned()),
        };
        Ok(Purged(count))
    }

    fn purge_url(
        &self,
        sites: &Sites,
        of_site: Option<&Arc<Site>>,
        url: &str,
        how: Purge,
        is_whole: bool,
    ) -> Result<usize, String> {
        let url = url::Url::parse(url).map_err(|error| format!("{url:?} is no URL: {error}"))?;
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
            if own.is_some_and(|own| Arc::ptr_eq(own, site)) {
                scopes.extend(site.asked_hosts().map(|host| (scheme, host, origin_port)));
            } else {
                scopes.push((url.scheme(), host, port));
            }
            for (scheme, host, port) in scopes {
                let parts = Parts {
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
        }
        Ok(count)
    }
}
