//! The compiled rules of one site: which URLs are proxied, as which kinds, and which requests for proxied URLs are accepted.
//!
//! ```text
//!  a URL of a page          ──► verdict ──► Verdict::Rewrite("/.spdy/1/…") or Skip(why)     urls/build.rs
//!  the target of a request  ──► open ──► ProxiedUrl or Refusal                              urls/open.rs
//!    the same under an alias ─► open_alias                                                  urls/host_alias_url.rs
//!                         all call match_host(scheme, host, port, path)
//! ```
//!
//! All of them use `match_host`, so every URL that is built can be opened, and every URL that can be opened would be built. One
//! entry applies to a URL: an exact name before a wildcard, a longer path before a shorter one.

use std::collections::BTreeSet;
use std::fmt;

use sha2::{Digest, Sha256};
use url::Url;

use crate::kind::{Kind, Kinds};
use crate::rules::capability::Keys;
use crate::rules::capability_cache::CapabilityCache;
use crate::rules::config::{Config, Referrer, Scheme};
use crate::rules::error::RulesError;
use crate::rules::host_aliases::HostAliases;
use crate::rules::host_limits::{HostLimits, LimitsConfig};
use crate::rules::host_name::{self, HostPattern};
use crate::rules::host_rule::{HostRule, check_path, patterns};
use crate::rules::path_normalization::{has_encoded_slash, is_ambiguous, is_in, may_lead_into};
use crate::rules::refusal::Refusal;
use crate::rules::selectors::Selectors;
use crate::rules::site_names;
use crate::rules::url_form::UrlForm;

/// To be increased whenever the same rules rewrite a page differently than before: part of [`Rules::tag`].
const REWRITER_VERSION: u32 = 2;

/// The rule by which a URL may be proxied.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RuleMatch<'a> {
    /// An entry applies to it.
    Listed(&'a HostRule),
    /// Its host is not listed, and discovery is on.
    Discovered,
}

/// The attribute that excludes an element from rewriting.
pub(crate) const OPT_OUT: &str = "data-no-spdy";

/// The rules of one site.
#[derive(Clone)]
pub struct Rules {
    site: Url,
    site_origin: String,
    site_host: String,
    pub(crate) prefix: String,
    pub(crate) entries: Vec<HostRule>,
    pub(crate) names: HostAliases,
    own: Vec<HostPattern>,
    site_names: Vec<String>,
    deny: Vec<HostPattern>,
    discover: bool,
    is_dry_run: bool,
    pages_left: Vec<String>,
    lazy_attributes: Vec<String>,
    selectors: Selectors,
    referrer: Referrer,
    pub(crate) limits: HostLimits,
    pub(crate) keys: Option<Keys>,
    pub(crate) made: CapabilityCache,
    pub(crate) form: UrlForm,
    tag: String,
    /// The tag if no alias is withheld.
    tag_with_all_aliases: String,
    tag_without_keys: String,
}

impl Rules {
    /// Checks and compiles an operator's configuration for the site at `site` (its origin, as `https://www.site.test`).
    ///
    /// `keys` sign and verify capabilities; they are not needed without discovery and shared hosts.
    ///
    /// # Errors
    ///
    /// The first [`RulesError`] that is found.
    pub fn compile(site: &Url, config: &Config, keys: Option<Keys>) -> Result<Self, RulesError> {
        let wrong_site = || RulesError::Site {
            found: site.to_string(),
        };
        let is_origin = Scheme::of_name(site.scheme()).is_some()
            && site.path() == "/"
            && site.query().is_none()
            && site.fragment().is_none()
            && site.username().is_empty()
            && site.password().is_none();
        let site_host = match site.host() {
            Some(host) if is_origin => host.to_string(),
            _ => return Err(wrong_site()),
        };
        let segment = config
            .prefix
            .strip_prefix('/')
            .and_then(|rest| rest.strip_suffix('/'));
        let is_segment = segment.is_some_and(|segment| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
            !segment.is_empty() && segment != "." && segment != ".." && segment.bytes().all(plain)
        });
        if !is_segment {
            return Err(RulesError::Prefix {
                found: config.prefix.clone(),
            });
        }
        let mut entries = config
            .hosts
            .iter()
            .map(|host| HostRule::compile(host, &config.limits))
            .collect::<Result<Vec<_>, _>>()?;
        // Exact names first, then the longer path; the sort is stable, and equal ones are an error, unless they
        // differ in the query alone.
        entries.sort_by(|a, b| {
            let key = |entry: &HostRule| (entry.pattern.clone(), entry.scheme, entry.port);
            key(a)
                .cmp(&key(b))
                .then(b.path.len().cmp(&a.path.len()))
                .then(a.path.cmp(&b.path))
                .then(a.import_query.cmp(&b.import_query))
        });
        // One entry applies to a path, regardless of its query.
        let twice = entries.windows(2).find(|pair| {
            let key = |entry: &HostRule| {
                (
                    entry.pattern.clone(),
                    entry.scheme,
                    entry.port,
                    entry.path.clone(),
                )
            };
            key(&pair[0]) == key(&pair[1]) && !pair[0].differs_in_query_only(&pair[1])
        });
        if let Some([one, other]) = twice {
            let (HostPattern::Exact(host) | HostPattern::Wildcard(host)) = &one.pattern;
            let (host, path) = (host.clone(), one.path.clone());
            return Err(match one.import_query == other.import_query {
                true => RulesError::Duplicate { host, path },
                false => RulesError::DifferentQueries { host, path },
            });
        }
        if keys.is_none() {
            if config.discover {
                return Err(RulesError::NoKeys { what: "discover" });
            }
            if entries
                .iter()
                .any(|entry| entry.shared && entry.kinds.has(Kind::Script))
            {
                return Err(RulesError::NoKeys {
                    what: "a shared host with scripts",
                });
            }
        }
        for attribute in &config.lazy_attributes {
            let plain = |byte: u8| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte)
            };
            let is_data = attribute
                .strip_prefix("data-")
                .is_some_and(|rest| !rest.is_empty());
            if !is_data || !attribute.bytes().all(plain) || attribute == OPT_OUT {
                return Err(RulesError::Attribute {
                    found: attribute.clone(),
                });
            }
        }
        let pages_left = config
            .pages_left
            .iter()
            .map(|path| check_path("pages_left", path))
            .collect::<Result<_, _>>()?;
        let site_origin = site.origin().ascii_serialization();
        let own = patterns("own_hosts", &config.own_hosts)?;
        let zone = config.names_under.as_deref();
        let names = HostAliases::compile(site, zone, &entries, &own, keys.as_ref())?;
        let tag_of_all = tag(&site_origin, config, keys.as_ref());
        Ok(Self {
            tag: tag_of_all.clone(),
            tag_with_all_aliases: tag_of_all,
            tag_without_keys: tag(&site_origin, config, None),
            site: site.clone(),
            site_origin,
            site_host,
            prefix: config.prefix.clone(),
            entries,
            names,
            own,
            site_names: config.site_names.clone(),
            deny: patterns("deny", &config.deny)?,
            discover: config.discover,
            is_dry_run: config.dry_run,
            pages_left,
            lazy_attributes: config.lazy_attributes.clone(),
            selectors: Selectors::with(&config.lazy_attributes),
            referrer: config.referrer,
            limits: HostLimits::compile(&config.limits, &LimitsConfig::default())?,
            keys,
            made: CapabilityCache::default(),
            form: UrlForm::default(),
        })
    }

    /// The site's origin, as a URL that ends in a slash.
    pub fn site(&self) -> &Url {
        &self.site
    }

    /// The site's origin, as in the Origin field: `https://www.site.test`.
    pub fn site_origin(&self) -> &str {
        &self.site_origin
    }

    /// The site's host, without a port.
    pub fn site_host(&self) -> &str {
        &self.site_host
    }

    /// The prefix of proxied URLs, as `/.spdy/`.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The `Referer` for proxied hosts.
    pub fn referrer(&self) -> Referrer {
        self.referrer
    }

    /// Attributes of lazy loaders that are rewritten too.
    pub fn lazy_attributes(&self) -> &[String] {
        &self.lazy_attributes
    }

    /// The selectors of the elements that are rewritten.
    pub(crate) fn selectors(&self) -> &Selectors {
        &self.selectors
    }

    /// A short token that differs for other rules, keys or rewriter versions: part of cache keys and of ETags.
    pub fn tag(&self) -> &str {
        &self.tag
    }

    /// True if `other` has the same rules for the same site, possibly with another key for capabilities.
    pub fn is_same_but_for_keys(&self, other: &Self) -> bool {
        self.tag_without_keys == other.tag_without_keys && self.form == other.form
    }

    /// True if a target is under the prefix of proxied URLs, or is a literal one: then only the accelerator answers it.
    pub fn is_proxied_target(&self, target: &str) -> bool {
        target.starts_with(&self.prefix) || self.literal(target).is_some()
    }

    /// True if unlisted hosts are proxied.
    pub(crate) fn discovers(&self) -> bool {
        self.discover
    }

    /// The same rules with URLs in the literal form. URLs in the full form can still be opened.
    ///
    /// # Errors
    ///
    /// [`RulesError::Literal`]: unlisted hosts need capabilities.
    pub fn with_literal_urls(self) -> Result<Self, RulesError> {
        if self.discovers() {
            return Err(RulesError::Literal);
        }
        let tag = [self.tag(), "-literal"].concat();
        Ok(Self {
            form: UrlForm::Literal,
            tag_with_all_aliases: tag.clone(),
            tag,
            ..self
        })
    }

    /// The same rules with another tag, for pages that must not use the aliases in `withheld`, which browsers would reject: a host
    /// without another alias is not rewritten. All aliases can still be opened.
    #[must_use]
    pub fn without_aliases(&self, withheld: &BTreeSet<String>) -> Self {
        let names = self.names.without(withheld);
        Self {
            tag: [&*self.tag_with_all_aliases, &names.tag_suffix()].concat(),
            names,
            ..self.clone()
        }
    }

    /// True if the page at `path` is passed on unchanged: if any interpretation of that path is in `pages_left`.
    pub fn skips_page(&self, path: &str) -> bool {
        let mut folders = self.pages_left.iter();
        folders.any(|folder| may_lead_into(path, folder))
    }

    /// True for a dry run ([`dry_run`](Config::dry_run)): pages of the site are evaluated but passed on unchanged. Proxied URLs are
    /// still served, because browsers may have pages that contain them.
    pub fn is_dry_run(&self) -> bool {
        self.is_dry_run
    }

    /// True if no reference in a page or style sheet of the site would be rewritten.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty() && !self.discover
    }

    /// The ports of the listed hosts.
    pub fn ports(&self) -> impl Iterator<Item = u16> {
        self.entries.iter().map(|entry| entry.port)
    }

    /// True if `host` is the site's, or merged with it.
    pub fn is_site_host(&self, host: &str) -> bool {
        host == self.site_host || self.own.iter().any(|pattern| pattern.matches(host))
    }

    /// True if the site has other own hosts (`own_hosts`).
    pub fn has_site_hosts(&self) -> bool {
        !self.own.is_empty()
    }

    /// True if the site is served under the host of `url`, so that all pages of that host are rewritten.
    pub(crate) fn is_served_by_site(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        let mut names = self.site_names.iter();
        host == self.site_host || names.any(|name| site_names::matches(name, host))
    }

    /// Host and target of a path and query in the literal form, if that form is enabled and the host is listed.
    pub(crate) fn literal<'t>(&self, target: &'t str) -> Option<(&'t str, &'t str)> {
        let rest = target
            .strip_prefix('/')
            .filter(|_| self.form == UrlForm::Literal)?;
        let (host, target) = rest.split_at(rest.find('/')?);
        self.scheme_and_port(host).map(|_| (host, target))
    }

    /// The scheme and port of a listed host, for a URL without them.
    pub(crate) fn scheme_and_port(&self, host: &str) -> Option<(Scheme, u16)> {
        let mut entries = self.entries.iter();
        let entry = entries.find(|entry| !entry.is_alias() && entry.pattern.matches(host))?;
        Some((entry.scheme, entry.port))
    }

    /// The rule by which a URL may be proxied, if any.
    pub(crate) fn match_host(
        &self,
        scheme: Scheme,
        host: &str,
        port: u16,
        path: &str,
    ) -> Result<RuleMatch<'_>, Refusal> {
        let named = || host.to_owned();
        if self.is_site_host(host) || self.names.covers(host) {
            return Err(Refusal::SiteHost { host: named() });
        }
        if self.deny.iter().any(|pattern| pattern.matches(host)) {
            return Err(Refusal::Denied { host: named() });
        }
        let of_host: Vec<_> = self
            .entries
            .iter()
            .filter(|entry| entry.matches_host(scheme, host, port))
            .collect();
        if !of_host.is_empty() {
            let governing = of_host.iter().position(|entry| is_in(path, &entry.path));
            let governing = governing.ok_or_else(|| Refusal::PathNotListed {
                host: named(),
                place: None,
            })?;
            let (narrower, entry) = (&of_host[..governing], of_host[governing]);
            let place = None;
            // A server that decodes %2f could leave this entry's paths by `..%2f`, or enter those of a narrower entry.
            let is_divided = entry.is_partial() || !narrower.is_empty();
            if is_divided && has_encoded_slash(path) {
                return Err(Refusal::EncodedSlash { place });
            }
            let is_narrower =
                is_ambiguous(path) && narrower.iter().any(|entry| entry.may_match_path(path));
            if is_narrower || entry.excludes(path) {
                let host = named();
                return Err(Refusal::PathExcepted { host, place });
            }
            return Ok(RuleMatch::Listed(entry));
        }
        let is_listed_elsewhere = self.entries.iter().any(|entry| entry.pattern.matches(host));
        if is_listed_elsewhere || (scheme, port) != (Scheme::Https, 443) {
            return Err(if is_listed_elsewhere || self.discover {
                Refusal::PortNotListed {
                    host: named(),
                    port,
                }
            } else {
                Refusal::NotListed { host: named() }
            });
        }
        if !self.discover {
            return Err(Refusal::NotListed { host: named() });
        }
        if host_name::is_private(host) {
            return Err(Refusal::PrivateName { host: named() });
        }
        Ok(RuleMatch::Discovered)
    }

    /// The kinds as which resources of the host of `origin` are proxied, and whether only a part of the host is, if pages need the
    /// host for nothing else; `all_moved` is the result of an earlier rewrite of a page.
    pub(crate) fn whole(&self, origin: &Url, all_moved: Option<bool>) -> Option<(Kinds, bool)> {
        let scheme = Scheme::of_name(origin.scheme())?;
        let host = origin.host_str()?;
        let port = origin.port().unwrap_or(scheme.default_port());
        if self.is_site_host(host) || self.deny.iter().any(|pattern| pattern.matches(host)) {
            return None;
        }
        let entries = self.entries.iter();
        let mut of_host = entries
            .filter(|entry| entry.matches_host(scheme, host, port))
            .peekable();
        if of_host.peek().is_none() {
            // Only by discovery, if at all.
            return (all_moved == Some(true)).then_some((Kinds::PASSIVE, false));
        }
        let entry = of_host.find(|entry| entry.removes_preconnect(all_moved))?;
        Some((entry.kinds, entry.is_partial()))
    }
}

/// Prints the site and the tag, but not the lists, which may be long.
impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("site", &self.site_origin)
            .field("tag", &self.tag)
            .finish_non_exhaustive()
    }
}

fn tag(site: &str, config: &Config, keys: Option<&Keys>) -> String {
    let mut hash = Sha256::new();
    hash.update(REWRITER_VERSION.to_be_bytes());
    hash.update(site);
    // Stored objects stay valid if limits change.
    let config = config.without_limits();
    hash.update(serde_json::to_vec(&config).expect("a configuration is plain data"));
    hash.update(keys.map(Keys::fingerprint).unwrap_or_default());
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
