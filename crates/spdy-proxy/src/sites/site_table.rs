//! All sites of a configuration: compiles them, and finds them by the requested name.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use http::HeaderValue;
use spdy_net::listen::trusted_proxies::TrustedProxies;
use spdy_rewrite::reference::integrity;
use spdy_rewrite::rules::Rules;
use spdy_rewrite::rules::capability::Keys;
use spdy_rewrite::rules::config::Config as Rewrite;
use spdy_rewrite::rules::error::RulesError;
use spdy_rewrite::rules::host_aliases;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::site_names;
use url::Url;

use crate::config::Config;
use crate::config::servers::ServerConfig;
use crate::config::site::SiteConfig;
use crate::sites::error_pages::ErrorPages;
use crate::sites::path_rules::PathRules;
use crate::sites::site::{Site, SiteServer, host_of};

/// All sites.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    by_name: BTreeMap<String, Arc<Site>>,
    /// The sites with a wildcard, by the domain above it: the wildcard, and its site.
    by_wildcard: BTreeMap<String, (String, Arc<Site>)>,
    /// By the aliases of other hosts.
    by_alias: BTreeMap<String, Arc<Site>>,
    /// Names with a configured address: name, port, address.
    addresses: Vec<(String, Option<u16>, IpAddr)>,
    /// Names of sites that are contacted at the address of another name.
    connect_hosts: BTreeMap<String, String>,
    /// Sites whose origin may be this accelerator.
    possible_loops: Vec<String>,
    /// Aliases of other hosts that pages do not use.
    withheld_aliases: BTreeSet<String>,
    /// `Alt-Svc` with the public port of HTTP/3, if it differs from the port of the listener.
    alt_svc: Option<HeaderValue>,
    /// The proxies whose statements about clients are trusted.
    trusted_proxies: Arc<TrustedProxies>,
}

/// Why a site cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// Its rules are invalid.
    #[error("site {site}: {error}")]
    Rules {
        /// Its first name.
        site: String,
        /// What is wrong.
        error: RulesError,
    },
    /// Its name does not make a valid URL.
    #[error("site {site}: {error}")]
    Name {
        /// Its first name.
        site: String,
        /// What is wrong.
        error: url::ParseError,
    },
    /// An error page cannot be read.
    #[error("site {site}: error_pages: cannot read {path}: {error}", path = path.display())]
    ErrorPage {
        /// Its first name.
        site: String,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        error: io::Error,
    },
    /// A name of a site shares cookies with the zone of the aliases.
    #[error("site {site}: names_under \"{zone}\": {reason}")]
    Zone {
        /// Its first name.
        site: String,
        /// The zone.
        zone: String,
        /// What is wrong.
        reason: String,
    },
}

impl SiteError {
    /// The first name of the site.
    #[must_use]
    pub fn site(&self) -> &str {
        match self {
            Self::Rules { site, .. }
            | Self::Name { site, .. }
            | Self::Zone { site, .. }
            | Self::ErrorPage { site, .. } => site,
        }
    }
}

/// The server of a checked configuration.
fn compile_server(server: &ServerConfig) -> Option<SiteServer> {
    Some(SiteServer {
        address: server.address.parse().ok()?,
        weight: server.weight,
    })
}

impl Sites {
    /// Compiles the sites of `config`. `keys` makes and checks the capabilities in URLs. Browsers still have URLs from before a restart, so the
    /// keys must stay the same.
    ///
    /// # Errors
    ///
    /// [`SiteError`], with the site.
    pub fn compile(config: &Config, keys: &Keys) -> Result<Self, SiteError> {
        Self::compile_with(config, keys, Ok)
    }

    /// Compiles the sites with proxied URLs in the form of the paper, `/HOST/PATH`, for experiments. Only listed hosts have them. They hide the
    /// site's own paths of the same name, and lose schemes and ports.
    ///
    /// # Errors
    ///
    /// [`SiteError`], with the site.
    pub fn compile_with_literal_urls(config: &Config, keys: &Keys) -> Result<Self, SiteError> {
        Self::compile_with(config, keys, Rules::with_literal_urls)
    }

    fn compile_with(
        config: &Config,
        keys: &Keys,
        form: fn(Rules) -> Result<Rules, RulesError>,
    ) -> Result<Self, SiteError> {
        let mut sites = Self {
            alt_svc: config.listen.alt_svc(),
            trusted_proxies: Arc::new(config.listen.trusted_proxies().unwrap_or_default()), // it was checked
            ..Self::default()
        };
        for site in &config.site {
            let name = site.names.first().cloned().unwrap_or_default();
            let public = config.listen.site_url(&name);
            let public = public.map_err(|error| SiteError::Name {
                site: name.clone(),
                error,
            })?;
            let rules = Rules::compile(&public, &with_site_names(site), Some(keys.clone()));
            let rules = rules.and_then(form).map_err(|error| SiteError::Rules {
                site: name.clone(),
                error,
            })?;
            check_cookie_isolation(config, site)?;
            let error_pages = ErrorPages::read(&site.error_pages);
            let error_pages = error_pages.map_err(|(path, error)| SiteError::ErrorPage {
                site: name.clone(),
                path,
                error,
            })?;
            sites.resolve(site);
            let compiled = Arc::new(Site {
                name,
                names: site.names.clone(),
                origin: site.origin.clone(),
                preserve_host: site.keep_host,
                servers: site.servers.iter().filter_map(compile_server).collect(),
                health: site.health.clone(),
                compress_private: site.compress_private,
                websocket: site.websocket.then_some(config.websocket),
                redirects_to_https: site.redirect_to_https,
                hsts: site.hsts.and_then(|hsts| hsts.value().ok()),
                error_pages,
                paths: PathRules::compile(&site.paths),
                quotas: (site.cache_mib.map(mib), site.disk_mib.map(mib)),
                rules: Arc::new(rules),
                pages: Arc::default(),
                counters: Arc::default(),
            });
            for named in compiled.rules.aliases() {
                let name = named.name().to_owned();
                sites.by_alias.insert(name, compiled.clone());
            }
            for name in &site.names {
                match site_names::wildcard_domain(name) {
                    Some(domain) => {
                        let entry = (name.clone(), compiled.clone());
                        sites.by_wildcard.insert(domain.to_owned(), entry);
                    }
                    None => {
                        sites.by_name.insert(name.clone(), compiled.clone());
                    }
                }
            }
        }
        let resolve = &config.upstream.resolve;
        let is_placed = |host: &str| resolve.keys().any(|name| name.eq_ignore_ascii_case(host));
        let is_own_name = |host: &str| sites.find(host).is_some() && !is_placed(host);
        let looping = config.site.iter().filter(|site| {
            site.address.is_none()
                && site.servers.is_empty()
                && site.origin.host_str().is_some_and(is_own_name)
        });
        sites.possible_loops = looping
            .filter_map(|site| site.names.first().cloned())
            .collect();
        Ok(sites)
    }

    /// These sites, with pages that use no alias in `withheld`, because browsers would refuse it. Requests for all aliases are still served.
    #[must_use]
    pub fn without_aliases(&self, withheld: &BTreeSet<String>) -> Self {
        let mut sites = self.clone();
        sites.withheld_aliases.clone_from(withheld);
        for site in self.all() {
            let next = Arc::new(Site {
                rules: Arc::new(site.rules.without_aliases(withheld)),
                ..Site::clone(site)
            });
            for place in sites.places_mut().filter(|place| Arc::ptr_eq(place, site)) {
                place.clone_from(&next);
            }
        }
        sites
    }

    /// Each entry of each site: by its names, wildcards and aliases.
    fn places_mut(&mut self) -> impl Iterator<Item = &mut Arc<Site>> {
        let by_wildcard = self.by_wildcard.values_mut().map(|(_, site)| site);
        let named = self.by_name.values_mut().chain(self.by_alias.values_mut());
        named.chain(by_wildcard)
    }

    /// The aliases of other hosts that pages do not use.
    #[must_use]
    pub fn withheld(&self) -> &BTreeSet<String> {
        &self.withheld_aliases
    }

    fn resolve(&mut self, site: &SiteConfig) {
        let host = site.origin.host_str().unwrap_or_default();
        let Some(address) = site.address else {
            // The site's names resolve to this proxy; the origin is at the address of its own name.
            let names = site
                .names
                .iter()
                .filter(|name| site.keep_host && *name != host);
            let names = names.map(|name| (name.clone(), host.to_owned()));
            self.connect_hosts.extend(names);
            return;
        };
        let port = site.origin.port_or_known_default();
        let names = site.names.iter().filter(|_| site.keep_host);
        let names = names.map(String::as_str).chain([host]);
        for name in names {
            self.addresses.push((name.to_owned(), port, address));
        }
    }

    /// The site with the name `authority`, which may have a port: the complete name of a site, or else a wildcard.
    #[must_use]
    pub fn find(&self, authority: &str) -> Option<&Arc<Site>> {
        let host = host_of(authority);
        self.by_name.get(host).or_else(|| {
            let host = host.to_ascii_lowercase();
            let by_name = self.by_name.get(&host);
            by_name.or_else(|| self.find_by_wildcard(&host))
        })
    }

    /// The site with a wildcard for `host`, in lower case.
    fn find_by_wildcard(&self, host: &str) -> Option<&Arc<Site>> {
        let (_, site) = self.by_wildcard.get(site_names::domain_above(host)?)?;
        Some(site)
    }

    /// The site with the name or the alias `authority`, which may have a port.
    #[must_use]
    pub fn find_with_aliases(&self, authority: &str) -> Option<&Arc<Site>> {
        self.find(authority).or_else(|| {
            let host = host_of(authority).to_ascii_lowercase();
            self.by_alias.get(&host)
        })
    }

    /// Every site, once.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Site>> {
        let named = self.by_name.iter();
        named.filter_map(|(name, site)| (*name == site.name).then_some(site))
    }

    /// The memory limits of single sites, in bytes, by the name that they have in keys.
    pub(crate) fn memory_quotas(&self) -> BTreeMap<String, u64> {
        self.quotas(|site| site.quotas.0)
    }

    /// The disk limits of single sites, in bytes, by the same names.
    pub(crate) fn disk_quotas(&self) -> BTreeMap<String, u64> {
        self.quotas(|site| site.quotas.1)
    }

    fn quotas(&self, of: impl Fn(&Site) -> Option<u64>) -> BTreeMap<String, u64> {
        let named = |site: &Arc<Site>| Some((site.rules.site_origin().to_owned(), of(site)?));
        self.all().filter_map(named).collect()
    }

    /// Continues the counters of each site with the same first name in `former`, and copies its page policies if its rules are the same
    /// except for the keys.
    pub(crate) fn copy_state_from(&mut self, former: &Self) {
        let mut continued = BTreeMap::<String, Arc<Site>>::new();
        for site in self.all() {
            let before = former.by_name.get(&site.name);
            let Some(before) = before.filter(|before| before.name == site.name) else {
                continue;
            };
            if site.rules.is_same_but_for_keys(&before.rules) {
                site.pages.copy_from(&before.pages);
            }
            let site = Site {
                counters: before.counters.clone(),
                ..Site::clone(site)
            };
            continued.insert(site.name.clone(), Arc::new(site));
        }
        for place in self.places_mut() {
            if let Some(site) = continued.get(&place.name) {
                place.clone_from(site);
            }
        }
    }

    /// The URL of the resource at its own host, if `url` is a proxied URL or has an alias; otherwise `url`.
    ///
    /// # Errors
    ///
    /// It is in the path of proxied URLs, and not a valid proxied URL.
    pub fn original_url(&self, url: Url) -> Result<Url, Refusal> {
        let target = &url[url::Position::BeforePath..url::Position::AfterQuery];
        let own = url.host_str().and_then(|host| self.find(host));
        if let Some(own) = own.filter(|own| own.rules.is_proxied_target(target)) {
            return own.rules.open(target).map(|proxied| proxied.url().clone());
        }
        let site = url.host_str().and_then(|host| self.by_alias.get(host));
        let named = site.and_then(|site| site.rules.named(url.host_str()?));
        // A URL with the alias may have the mark for an unrewritten resource.
        let rest = integrity::strip_unrewritten_mark(target).unwrap_or(target);
        let own =
            named.and_then(|alias| Url::parse(&format!("{}{rest}", alias.original_origin())).ok());
        Ok(own.unwrap_or(url))
    }

    /// All aliases, in order.
    pub fn alias_names(&self) -> impl Iterator<Item = &str> {
        self.by_alias.keys().map(String::as_str)
    }

    /// All names of sites: the wildcards, then the complete names, both in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let wildcards = self.by_wildcard.values().map(|(name, _)| name);
        wildcards.chain(self.by_name.keys()).map(String::as_str)
    }

    /// The names of each certificate: those of a site, its aliases, and those of sites that list one another's names as their own (`own_hosts`).
    /// Browsers use one session for the names of one certificate.
    #[must_use]
    pub fn certificate_names(&self) -> Vec<Vec<String>> {
        let sites: Vec<&Arc<Site>> = self.all().collect();
        let mut groups: Vec<usize> = (0..sites.len()).collect();
        // Few sites have own hosts, and there may be thousands of sites.
        let with_own = sites.iter().enumerate();
        for (one, site) in with_own.filter(|(_, site)| site.rules.has_site_hosts()) {
            for (other, its) in sites.iter().enumerate() {
                let (into, from) = (
                    groups[one].min(groups[other]),
                    groups[one].max(groups[other]),
                );
                if into != from && its.names.iter().any(|name| site.rules.is_site_host(name)) {
                    let merged = groups.iter_mut().filter(|group| **group == from);
                    merged.for_each(|group| *group = into);
                }
            }
        }
        let mut members = BTreeMap::<usize, (Vec<String>, Vec<String>)>::new();
        for (site, group) in sites.iter().zip(groups) {
            let (names, others) = members.entry(group).or_default();
            names.extend(site.names.iter().cloned());
            others.extend(site.rules.aliases().map(|alias| alias.name().to_owned()));
        }
        let names = members.into_values();
        names
            .map(|(names, others)| without_covered([names, others].concat()))
            .collect()
    }

    /// The proxies whose statements about clients are trusted.
    #[must_use]
    pub fn trusted_proxies(&self) -> &Arc<TrustedProxies> {
        &self.trusted_proxies
    }

    /// The first names of sites whose origin has the name of a site and no `address`. Unless that name resolves to another machine, the proxy
    /// would contact itself.
    #[must_use]
    pub fn possible_loops(&self) -> &[String] {
        &self.possible_loops
    }

    /// The `Alt-Svc` for a client that connected to a listener with the `Alt-Svc` `door`.
    pub(crate) fn alt_svc(&self, door: &HeaderValue) -> HeaderValue {
        self.alt_svc.as_ref().unwrap_or(door).clone()
    }

    /// Names of sites that are contacted at the address of another name.
    #[must_use]
    pub fn connect_hosts(&self) -> &BTreeMap<String, String> {
        &self.connect_hosts
    }

    /// The configured addresses of origins: name, port, address.
    #[must_use]
    pub fn addresses(&self) -> &[(String, Option<u16>, IpAddr)] {
        &self.addresses
    }
}

/// `names` without those that a wildcard among them covers: authorities refuse a certificate that has both.
fn without_covered(names: Vec<String>) -> Vec<String> {
    let is_wildcard = |name: &&String| site_names::wildcard_domain(name).is_some();
    let wildcards: Vec<String> = names.iter().filter(is_wildcard).cloned().collect();
    let is_covered = |name: &String| wildcards.iter().any(|it| site_names::matches(it, name));
    names.into_iter().filter(|name| !is_covered(name)).collect()
}

fn mib(mib: usize) -> u64 {
    (mib as u64) << 20
}

/// The rewrite rules for `site`, with every name of the site among its own hosts: the proxy would request resources of these hosts from
/// itself. Addresses are never proxied.
fn with_site_names(site: &SiteConfig) -> Rewrite {
    let mut rewrite = site.rewrite.clone();
    let is_domain = |name: &&String| matches!(url::Host::parse(name), Ok(url::Host::Domain(_)));
    let others = site.names.iter().skip(1).filter(is_domain);
    rewrite.own_hosts.extend(others.cloned());
    rewrite.site_names.clone_from(&site.names);
    rewrite
}

/// Checks that no site shares cookies with the zone of the aliases of `site`.
fn check_cookie_isolation(config: &Config, site: &SiteConfig) -> Result<(), SiteError> {
    let Some(zone) = &site.rewrite.names_under else {
        return Ok(());
    };
    for name in config.site.iter().flat_map(|site| &site.names) {
        let name = site_names::wildcard_domain(name).unwrap_or(name);
        host_aliases::check_cookie_isolation(zone, name).map_err(|reason| SiteError::Zone {
            site: site.names.first().cloned().unwrap_or_default(),
            zone: zone.clone(),
            reason,
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use super::*;
    use crate::sites::page_policies::PagePolicy;

    fn keys(fill: u8) -> Keys {
        Keys::from_secrets(&[fill; 32], None).expect("the secret is long enough")
    }

    /// A browser may still have a page from before the key changed, and the page's policy is still the same.
    #[test]
    fn page_policies_survive_new_keys_but_not_new_rules() {
        let text = |host: &str| {
            format!(
                "[[site]]\nnames = ['www.site.test']\norigin = 'https://origin.test'\n\
                 [[site.rewrite.hosts]]\nhost = '{host}'\nkinds = ['script']\n"
            )
        };
        let sites = |host: &str, fill| {
            let config = Config::parse(&text(host)).expect("a valid value");
            Sites::compile(&config, &keys(fill)).expect("a valid value")
        };
        let guards = |sites: &Sites, host: &str| {
            let site = sites.find("www.site.test").expect("the site is configured");
            let script = Url::parse(&format!("https://{host}/a.js")).expect("a URL");
            !site.pages.guarded_kinds(&site.rules, &script).is_empty()
        };
        let former = sites("cdn.test", 1);
        let site = former
            .find("www.site.test")
            .expect("the site is configured");
        let page = Url::parse("https://www.site.test/").expect("a URL");
        let head = HeaderMap::from_iter([
            (header::CONTENT_TYPE, HeaderValue::from_static("text/html")),
            (
                header::CONTENT_SECURITY_POLICY,
                HeaderValue::from_static("script-src 'self'"),
            ),
        ]);
        let policy = PagePolicy::from_head(&site.rules, &page, &head);
        site.pages.record_head(|| Some(page), policy);
        assert!(guards(&former, "cdn.test"));
        for (host, fill, is_guarded) in [
            ("cdn.test", 1, true),
            ("cdn.test", 2, true),
            ("other.test", 1, false),
        ] {
            let mut next = sites(host, fill);
            next.copy_state_from(&former);
            assert_eq!(guards(&next, host), is_guarded, "{host} {fill}");
        }
    }

    #[test]
    fn complete_names_of_any_site_have_precedence_over_wildcards() {
        let site = |names: &[&str]| {
            format!("[[site]]\nnames = {names:?}\norigin = 'https://origin.test'\n")
        };
        let config = [
            site(&["www.a.test", "*.a.test", "*.b.a.test"]),
            site(&["img.a.test"]),
        ];
        let config = Config::parse(&config.concat()).expect("a valid value");
        let sites = Sites::compile(&config, &keys(7)).expect("valid sites");
        let found = |host: &str| sites.find(host).map(|site| site.name.as_str());
        for (host, expected) in [
            ("www.a.test", Some("www.a.test")),
            ("Shop.A.test:8443", Some("www.a.test")),
            ("x.b.a.test", Some("www.a.test")),
            ("img.a.test", Some("img.a.test")),
            ("IMG.a.test:443", Some("img.a.test")),
            ("a.test", None),
            ("x.y.a.test", None),
            ("user@x.a.test", None),
            (".a.test", None),
        ] {
            assert_eq!(found(host), expected, "{host}");
        }
        assert_eq!(sites.all().count(), 2);
        let names: Vec<&str> = sites.names().collect();
        assert_eq!(
            names,
            ["*.a.test", "*.b.a.test", "img.a.test", "www.a.test"]
        );
        // With one certificate, because the wildcard covers the other site.
        assert_eq!(sites.certificate_names(), [["*.a.test", "*.b.a.test"]]);
        let site = sites.find("x.a.test").expect("the site");
        assert!(site.rules.is_site_host("y.a.test"), "no third party");
        let withheld = BTreeSet::from(["n.test".to_owned()]);
        let mut changed = sites.without_aliases(&withheld);
        let is_one_site = |sites: &Sites| {
            let [by_name, by_wildcard] = ["www.a.test", "x.a.test"].map(|host| sites.find(host));
            by_name
                .zip(by_wildcard)
                .is_some_and(|(a, b)| Arc::ptr_eq(a, b))
        };
        assert!(is_one_site(&changed));
        changed.copy_state_from(&sites);
        assert!(is_one_site(&changed), "after a reload");
    }

    #[test]
    fn sites_sharing_site_hosts_share_a_certificate() {
        let site = |names: &[&str], own: &[&str]| {
            format!(
                "[[site]]\nnames = {names:?}\norigin = 'https://origin.test'\n[site.rewrite]\nown_hosts = {own:?}\n"
            )
        };
        let config = [
            site(&["www.a.test", "a.test"], &["*.a.test"]),
            site(&["b.test"], &["cdn.c.test"]),
            site(&["img.a.test"], &[]),
            site(&["c.test", "cdn.c.test"], &["static.b.test"]),
            site(&["d.test"], &["elsewhere.test"]),
            site(&["static.b.test"], &[]),
        ];
        let config = Config::parse(&config.concat()).expect("a valid value");
        let sites = Sites::compile(&config, &keys(7)).expect("a valid value");
        let names: Vec<String> = sites
            .certificate_names()
            .iter()
            .map(|names| names.join(" "))
            .collect();
        assert_eq!(
            names,
            [
                "b.test c.test cdn.c.test static.b.test",
                "d.test",
                "img.a.test www.a.test a.test",
            ]
        );
    }
}
