//! An opened proxied URL: the resource to fetch, the kinds as which it may be served, and the allowed targets of its redirects.

use url::Url;

use crate::kind::{Kind, Kinds};
use crate::load::Load;
use crate::rules::config::Scheme;
use crate::rules::host_name;
use crate::rules::refusal::Refusal;
use crate::rules::verdict::ReferenceSource;
use crate::rules::{RuleMatch, Rules};
use crate::urls::target_check::{check_length, check_target};

/// The grant by which a proxied URL was opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Grant {
    /// Its host is listed.
    Listed,
    /// It has a capability for its origin.
    Origin,
    /// It has a capability for its own URL.
    Url,
    /// Its host has an alias, and was requested by it.
    Alias,
}

/// An opened proxied URL: the resource to fetch, and the kinds as which it may be served.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProxiedUrl {
    pub(crate) grant: Grant,
    pub(crate) scheme: Scheme,
    pub(crate) kinds: Kinds,
    pub(crate) is_listed: bool,
    pub(crate) url: Url,
    /// The part before the path in the proxied URL.
    pub(crate) head: String,
}

impl ProxiedUrl {
    /// The grant by which it was opened.
    pub fn grant(&self) -> Grant {
        self.grant
    }

    /// True if its host is listed, for any grant.
    pub fn is_listed(&self) -> bool {
        self.is_listed
    }

    /// True if it is on an alias, not under the site's name.
    pub fn is_alias(&self) -> bool {
        self.grant == Grant::Alias
    }

    /// The scheme of requests to it.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host's name, in lower case.
    pub fn host(&self) -> &str {
        self.url.host_str().expect("a proxied URL has a host")
    }

    /// The port, also if it is the default port.
    pub fn port(&self) -> u16 {
        self.url.port().unwrap_or(self.scheme.default_port())
    }

    /// The value of the Host field: the name, and the port if it is not the default port.
    pub fn authority(&self) -> &str {
        self.url.authority()
    }

    /// Path and query, byte for byte as received.
    pub fn target(&self) -> &str {
        &self.url[url::Position::BeforePath..]
    }

    /// The URL at the host itself.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The kinds as which it may be served.
    pub fn kinds(&self) -> Kinds {
        self.kinds
    }

    /// The same without `kinds`.
    #[must_use]
    pub fn without(self, kinds: Kinds) -> Self {
        let kinds = self.kinds.less(kinds);
        Self { kinds, ..self }
    }

    /// The same, restricted to the kinds of `other`.
    fn restrict_to(self, other: &Self) -> Self {
        let kinds = self.kinds.and(other.kinds);
        Self { kinds, ..self }
    }

    /// The same after redirects through `hops` to this resource, for `load`: restricted to the kinds of each hop. `guarded` returns
    /// the kinds that are not served from a URL; see [`CspGuard`](crate::csp::guard::CspGuard). `None` if the browser must follow
    /// such redirects itself; see [`RedirectState::decide`](crate::response::redirect::RedirectState::decide).
    pub fn after_redirects(
        &self,
        rules: &Rules,
        load: Load,
        hops: &[Url],
        guarded: impl Fn(&Url) -> Kinds,
    ) -> Option<Self> {
        let mut last = self.clone();
        for hop in hops {
            let next = last.redirect_target(rules, hop).ok()?;
            let kinds = guarded(next.url());
            let next = next.without(kinds);
            if !may_follow(load, &last, &next) {
                return None;
            }
            last = next;
        }
        Some(self.clone().restrict_to(&last))
    }

    /// The author of the references in it, if it is a style sheet.
    pub fn reference_source(&self) -> ReferenceSource {
        if self.is_alias() {
            ReferenceSource::Alias
        } else if self.is_listed {
            ReferenceSource::Listed
        } else {
            ReferenceSource::Discovered
        }
    }

    /// The resource to fetch when the host redirects to `next`: of the same origin, or listed; never with more kinds than this one.
    ///
    /// # Errors
    ///
    /// Why it is not fetched here.
    pub(crate) fn redirect_target(&self, rules: &Rules, next: &Url) -> Result<Self, Refusal> {
        let mut url = next.clone();
        url.set_fragment(None);
        let host = url.host_str().unwrap_or_default();
        let scheme = Scheme::of_name(url.scheme()).ok_or(Refusal::Location)?;
        let port = url.port().unwrap_or(scheme.default_port());
        host_name::check(host)?;
        check_length(&url[url::Position::BeforePath..])?;
        check_target(rules, &url[url::Position::BeforePath..])?;
        let is_same_origin = url.origin() == self.url.origin();
        let (is_listed, kinds) = match rules.match_host(scheme, host, port, url.path())? {
            RuleMatch::Listed(entry) if entry.is_alias() => {
                let (host, place) = (host.to_owned(), next.to_string());
                return Err(Refusal::HasAlias { host, place });
            }
            RuleMatch::Listed(entry) if is_same_origin || !entry.shared => (true, entry.kinds),
            // A redirect from another host does not make a shared host more trusted for scripts.
            RuleMatch::Listed(entry) => (true, entry.kinds.without(Kind::Script)),
            RuleMatch::Discovered if is_same_origin => (false, Kinds::PASSIVE),
            RuleMatch::Discovered => {
                let host = host.to_owned();
                return Err(Refusal::NotListed { host });
            }
        };
        let kinds = kinds.and(self.kinds);
        if kinds.is_empty() {
            let host = host.to_owned();
            return Err(Refusal::KindNotListed {
                kind: Kind::Script,
                host,
            });
        }
        Ok(Self {
            grant: self.grant,
            scheme,
            kinds,
            is_listed,
            url,
            head: self.head.clone(),
        })
    }

    /// The path of `target` (path and query) of the same origin, with the same capability.
    pub(crate) fn sibling_path(&self, target: &str) -> String {
        format!("{}{target}", self.head)
    }

    /// Its path and query under the site's name; the full URL if it is on an alias.
    pub fn path(&self) -> String {
        self.sibling_path(self.target())
    }
}

/// True if a redirect of `moved` to `next` is followed here for `load`: the imports of a module are relative to its final URL,
/// which the browser would not know.
pub(crate) fn may_follow(load: Load, moved: &ProxiedUrl, next: &ProxiedUrl) -> bool {
    load.expected != Some(Kind::Script) || has_same_directory(moved, next)
}

/// True if relative references have the same meaning from both.
fn has_same_directory(one: &ProxiedUrl, other: &ProxiedUrl) -> bool {
    let folder = |moved: &ProxiedUrl| moved.url().join(".").ok();
    folder(one) == folder(other)
}
