//! All sites of a configuration, found by the requested name. `compile.rs` makes the table.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use http::HeaderValue;
use spdy_net::listen::trusted_proxies::TrustedProxies;
use spdy_rewrite::reference::integrity;
use spdy_rewrite::rules::refusal::Refusal;
use spdy_rewrite::rules::site_names;
use url::Url;

use crate::sites::site::{Site, host_of};

/// All sites.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    pub(super) by_name: BTreeMap<String, Arc<Site>>,
    /// The sites with a wildcard, by the domain above it: the wildcard, and its site.
    pub(super) by_wildcard: BTreeMap<String, (String, Arc<Site>)>,
    /// By the aliases of other hosts.
    pub(super) by_alias: BTreeMap<String, Arc<Site>>,
    /// Names with a configured address: name, port, address.
    pub(super) addresses: Vec<(String, Option<u16>, IpAddr)>,
    /// Names of sites that are contacted at the address of another name.
    pub(super) connect_hosts: BTreeMap<String, String>,
    /// Sites whose origin may be this accelerator.
    pub(super) possible_loops: Vec<String>,
    /// Aliases of other hosts that pages do not use.
    pub(super) withheld_aliases: BTreeSet<String>,
    /// `Alt-Svc` with the public port of HTTP/3, if it differs from the port of the listener.
    pub(super) alt_svc: Option<HeaderValue>,
    /// The proxies whose statements about clients are trusted.
    pub(super) trusted_proxies: Arc<TrustedProxies>,
}

impl Sites {
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

#[cfg(test)]
mod tests {
    use http::{HeaderMap, header};

    use spdy_rewrite::rules::capability::Keys;

    use super::*;
    use crate::config::Config;
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
